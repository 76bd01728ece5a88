"""How one agent of each algorithm learns, as settings: a field is a keyword and a flag.

Its kind says what it may be (`rules.py`), the text under it is its help.
Nothing is computed here, and nothing that computes is imported.
"""

from dataclasses import dataclass, field
from typing import Annotated, Literal, TypeAlias

from sunrise.config.rules import (
    AnyNumber,
    Between,
    Count,
    CountOrZero,
    Fraction,
    Layers,
    LessThanOne,
    NotNegative,
    NumberOrWord,
    Sizes,
    WidthAndBlocks,
)

Init: TypeAlias = Literal["default", "rlkit", "xavier"]
Normaliser: TypeAlias = Literal["rows", "mask"]
KernelInit = Literal["delta", "orthogonal"]
Activation: TypeAlias = Literal["relu", "tanh", "elu", "leaky_relu", "silu", "gelu", "sigmoid"]
CRITICS = 2
"""Critics of an agent, unless it is told otherwise."""


@dataclass(frozen=True)
class ArchitectureSettings:
    """What the networks of an agent are made of, and how many critics it has."""

    n_critics: Count = CRITICS
    """K: critics of one agent; all of them are voters of the weight and of exploration."""
    critic_subset: Count = CRITICS
    """M: critics, drawn anew for each update, whose minimum is the target (REDQ); K or more: all of them."""
    layer_norm: bool = False
    """Normalise the hidden layers of the critics before their activation (DroQ)."""
    dropout: LessThanOne = 0.0
    """Chance that a hidden unit of a critic is left out, in all that updates and exploration ask of critics (DroQ)."""
    network: Literal["mlp", "simba"] = "mlp"
    """Layers of `net_arch`, or SimBa's residual blocks, whose policy bends its log-deviation into its bounds."""
    simba_actor: WidthAndBlocks = (128, 1)
    """Width and number of blocks of a SimBa actor."""
    simba_critic: WidthAndBlocks = (512, 2)
    """Width and number of blocks of a SimBa critic."""
    normalise_observations: bool = False
    """Learn from observations in units of their deviations so far; the statistics are part of the agent (SimBa)."""
    weight_decay: NotNegative = 0.0
    """AdamW's decay of the weights of actor and critics (SimBa)."""
    critic_net_arch: Annotated[tuple[int, ...], Sizes("layers of at least 1 unit", empty=True)] = ()
    """Hidden layers of the critics, where they are others than the actor's; empty: those of `net_arch`."""
    activation: Activation = "relu"
    """What is between the layers of `net_arch`."""


@dataclass(frozen=True)
class SACSettings:
    """How one SAC agent learns."""

    learning_rate: NotNegative = 3e-4
    """Adam's step size for actor, critics and entropy weight."""
    tau: Fraction = 0.005
    """How far the target critics move towards the critics at each update."""
    ent_coef: NumberOrWord = "auto"
    """Entropy weight α: a number, `auto` to tune it, or `auto_0.1` to tune it from 0.1."""
    target_entropy: NumberOrWord = "auto"
    """Entropy the tuning aims at; `auto` is minus the number of action dimensions, `auto_0.5` minus half of it."""
    net_arch: Layers = (256, 256)
    """Hidden layers of actor and critics."""
    init: Init = "default"
    """Initial weights: `default` U(±1/√fan_in); `rlkit` as in the authors' code; `xavier` as in REDQ's and DroQ's."""
    target_init: Literal["copy", "random"] = "copy"
    """Target critics start as a copy of the critics, or with random weights of their own (the authors' code)."""
    loss_normaliser: Normaliser = "rows"
    """Masked losses are divided by the number of rows (the paper), or by Σ mask + 1 (the authors' code)."""
    weight_action: Literal["backup", "fresh"] = "backup"
    """The weight is taken at the next action of the backup, or at another sample (the authors' code)."""
    alpha_in_target: Literal["before", "after"] = "before"
    """Actor and target use α before its step, or after it (the authors' code)."""
    alpha_loss: Literal["log", "alpha"] = "log"
    """The loss of the entropy weight has log α as its factor, or α itself (SimBa)."""
    update_order: Literal["critic", "actor", "together"] = "critic"
    """The critics step first and the actor on the stepped ones; or actor and α first, and the critics' target is
    theirs (DisCor's own code); or all of them from where they were (REDQ's)."""
    policy_delay: Count = 1
    """Updates of the critics and targets for each one of the actor and the entropy weight."""
    actor_value: Literal["min", "mean"] = "min"
    """The actor climbs the minimum of all critics, or their mean (REDQ, DroQ)."""
    architecture: ArchitectureSettings = field(default_factory=ArchitectureSettings)
    """The networks."""


@dataclass(frozen=True)
class TD3Settings:
    """How one TD3 agent learns."""

    learning_rate: NotNegative = 1e-3
    """Adam's step size for actor and critics."""
    tau: Fraction = 0.005
    """How far the target networks move towards the networks when they move."""
    action_noise: NotNegative = 0.1
    """Standard deviation of the Gaussian noise that explores; actions are in [-1, 1]."""
    target_policy_noise: NotNegative = 0.2
    """Standard deviation of the noise that smooths the target."""
    target_noise_clip: NotNegative = 0.5
    """Bound of that noise."""
    policy_delay: Count = 2
    """Updates of the critics for each one of the actor and the targets."""
    net_arch: Layers = (400, 300)
    """Hidden layers of actor and critics."""
    actor_value: Literal["first", "min", "mean"] = "first"
    """The actor climbs the first critic, the minimum of all, or their mean."""
    architecture: ArchitectureSettings = field(default_factory=ArchitectureSettings)
    """The networks."""


@dataclass(frozen=True)
class DisCorSettings:
    """How one DisCor agent learns: SAC's settings, and where the temperature starts."""

    sac: SACSettings = field(default_factory=lambda: SACSettings(update_order="actor"))
    """The agent inside; its actor steps first, as in DisCor's own code."""
    discor_temperature: Annotated[float, Between(1e-06)] = 10.0
    """First temperature τ of the error weights; it then follows the mean error."""


@dataclass(frozen=True)
class RainbowSettings:
    """How one Rainbow agent learns."""

    learning_rate: NotNegative = 1e-4
    """Adam's step size."""
    adam_eps: NotNegative = 1.5e-4
    """Adam's ε, which keeps small gradients from making full steps."""
    n_atoms: Annotated[int, Between(2)] = 51
    """Atoms of a value's distribution."""
    v_min: AnyNumber = -10.0
    """The lowest atom."""
    v_max: AnyNumber = 10.0
    """The highest atom."""
    distributional: bool = True
    """Learn distributions by cross-entropy (C51), or plain values by the Huber loss (DQN)."""
    dueling: bool = True
    """One stream for the value of a state and one for the advantages of actions."""
    noisy: bool = True
    """Explore by noise on the weights of the streams."""
    noisy_std: NotNegative = 0.1
    """σ₀: first standard deviation of that noise, times √in."""
    double: bool = True
    """The next action is the network's choice, valued by the target network; otherwise the latter's own choice."""
    target_update_interval: Count = 2000
    """Updates between copies of the network to the target network, counted as if updates had begun with the first
    timestep: with one update a timestep, a copy comes at every so many timesteps (the reference)."""
    max_grad_norm: NotNegative = 10.0
    """Longer gradients are scaled to this norm; 0 is no bound (the authors' code)."""
    net_arch: Layers = (256,)
    """Hidden layers of each stream; before them are two convolutions, or for states a layer of the first size."""
    epsilon: Fraction = 0.0
    """Chance of a random action in place of the ensemble's when it explores: for agents without noisy layers."""
    weight_value: Literal["double", "max"] = "double"
    """Value that members disagree on: of the backup's action (the authors' code), or the maximum (the paper)."""
    augmentation: Literal["none", "shift"] = "none"
    """Learn from pictures as they are, or moved at random (DrQ); all members see one view."""
    contrastive: bool = False
    """Also learn to tell which two views are of one picture (CURL)."""
    contrastive_weight: NotNegative = 1.0
    """Weight of that loss; CURL has 0.01 for Pong, Boxing, Private Eye and Freeway."""
    shift_pad: CountOrZero = 4
    """How many pixels pictures are moved at most."""
    normalise_observations: bool = False
    """Learn from numbers in units of their deviations so far, also beside pictures; the statistics are part of the
    agent."""


@dataclass(frozen=True)
class DQNSettings:
    """How one DQN agent learns; names and values are Stable-Baselines3's."""

    learning_rate: NotNegative = 1e-4
    """Adam's step size."""
    adam_eps: NotNegative = 1e-8
    """Adam's ε, as PyTorch has it."""
    tau: Fraction = 1.0
    """How far the target network moves towards the network when it moves; 1 is a copy."""
    target_update_interval: Count = 10_000
    """Timesteps between moves of the target network."""
    max_grad_norm: NotNegative = 10.0
    """Longer gradients are scaled to this norm; 0 is no bound."""
    exploration_fraction: Fraction = 0.1
    """Part of the training in which the chance of a random action falls from its first value to its last."""
    exploration_initial_eps: Fraction = 1.0
    """Chance of a random action at first."""
    exploration_final_eps: Fraction = 0.05
    """Chance of a random action at last."""
    net_arch: Layers = (64, 64)
    """Hidden layers; for pictures two convolutions are before them."""


@dataclass(frozen=True)
class PixelSettings:
    """How one agent that sees pictures learns; the values are RAD's."""

    learning_rate: NotNegative = 1e-3
    """Adam's step size for encoder, critics and actor; 2e-4 for cheetah-run."""
    alpha_learning_rate: NotNegative = 1e-4
    """Adam's step size for the entropy weight."""
    alpha_beta: LessThanOne = 0.5
    """Adam's memory of the entropy weight's gradient."""
    tau: Fraction = 0.01
    """How far the target critics move towards the critics when they move."""
    encoder_tau: Fraction = 0.05
    """How far the target encoder moves towards the encoder when it moves."""
    policy_delay: Count = 2
    """Updates of the critic for each one of the actor and the entropy weight; the first update is one of both."""
    target_update_interval: Count = 2
    """Updates between steps of the targets; the first update is followed by one."""
    actor_critic: Literal["before", "after"] = "after"
    """The actor looks through and is judged by the critic after its step, as in the originals' code, or before it,
    which saves a pass of the convolutions."""
    ent_coef: NumberOrWord = "auto_0.1"
    """Entropy weight α: a number, `auto` to tune it from 1, or `auto_0.1` to tune it from 0.1."""
    target_entropy: NumberOrWord = "auto"
    """Entropy the tuning aims at; `auto` is minus the number of action dimensions."""
    net_arch: Layers = (1024, 1024)
    """Hidden layers of actor and critics."""
    filters: Count = 32
    """Channels of each convolution."""
    conv_layers: Count = 4
    """Convolutions."""
    feature_dim: Count = 50
    """Numbers that the encoder makes of a picture."""
    kernel_init: KernelInit = "delta"
    """First kernels: an orthogonal matrix amid zeros (RAD, CURL), or orthogonal as a whole (DrQ)."""
    normalise_observations: bool = False
    """Learn from numbers in units of their deviations so far, also beside pictures; the statistics are part of the
    agent."""
    loss_normaliser: Normaliser = "rows"
    """Masked losses are divided by the number of rows (the paper), or by Σ mask + 1 (the authors' code)."""


@dataclass(frozen=True)
class RADSettings:
    """How one RAD agent learns."""

    pixel: PixelSettings = field(default_factory=PixelSettings)
    """The agent that sees what the augmentation leaves."""
    augmentation: Literal["crop", "translate", "none"] = "crop"
    """Random crops, random places in a larger black picture (one for an observation and the next), or none: the centre
    crop always, which is plain SAC."""
    crop_size: Count = 84
    """Side of a crop."""
    translate_size: Count = 108
    """Side of the black picture in which the whole one, of `render_size`, is placed."""


DRQ_PIXEL = PixelSettings(alpha_learning_rate=1e-3, alpha_beta=0.9, encoder_tau=0.01, kernel_init="orthogonal")
"""Where DrQ differs from RAD: the entropy weight is stepped like the rest, one τ holds for everything, and the first
kernels are orthogonal as a whole."""


@dataclass(frozen=True)
class DrQSettings:
    """How one DrQ agent learns."""

    pixel: PixelSettings = field(default_factory=lambda: DRQ_PIXEL)
    """The agent that sees what the augmentation leaves."""
    shift_pad: CountOrZero = 4
    """How many pixels a picture is shifted at most."""
    views: Count = 2
    """M: views of an observation, over which the critic's loss is summed."""
    target_views: Count = 2
    """K: views of the next observation, over which the target is averaged."""


@dataclass(frozen=True)
class CURLSettings:
    """How one CURL agent learns."""

    pixel: PixelSettings = field(default_factory=PixelSettings)
    """The agent inside."""
    crop_size: Count = 84
    """Side of a crop."""


@dataclass(frozen=True)
class RandomSettings:
    """There is nothing to set."""
