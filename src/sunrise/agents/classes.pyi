# The agents and their keywords as types, made by `make keywords` from the settings; do not edit.

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypedDict, Unpack

from sunrise.agents.agent import Agent
from sunrise.agents.environments import EnvArgument
from sunrise.envs.make import AnyEnv, Maker

class OthersKeywords(TypedDict, total=False):
    # Stable-Baselines3's that are no settings: see sunrise/compat/arguments.py
    stats_window_size: int
    monitor_wrapper: bool
    replay_buffer_class: Any
    replay_buffer_kwargs: Mapping[str, Any] | None
    optimize_memory_usage: bool
    n_steps: int
    use_sde: bool
    sde_sample_freq: int
    use_sde_at_warmup: bool
    _init_setup_model: bool

class SACKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    tau: float
    ent_coef: str | float
    target_entropy: str | float
    net_arch: tuple[int, ...] | list[int]
    init: Literal["default", "rlkit", "xavier"]
    target_init: Literal["copy", "random"]
    loss_normaliser: Literal["rows", "mask"]
    weight_action: Literal["backup", "fresh"]
    alpha_in_target: Literal["before", "after"]
    alpha_loss: Literal["log", "alpha"]
    update_order: Literal["critic", "actor", "together"]
    policy_delay: int
    actor_value: Literal["min", "mean"]
    n_critics: int
    critic_subset: int
    layer_norm: bool
    dropout: float
    network: Literal["mlp", "simba"]
    simba_actor: tuple[int, int] | list[int]
    simba_critic: tuple[int, int] | list[int]
    normalise_observations: bool
    weight_decay: float
    critic_net_arch: tuple[int, ...] | list[int]
    activation: Literal["relu", "tanh", "elu", "leaky_relu", "silu", "gelu", "sigmoid"]
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class SAC(Agent, algo="sac"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[SACKeywords],
    ) -> None: ...

class TD3Keywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    tau: float
    action_noise: Any
    target_policy_noise: float
    target_noise_clip: float
    policy_delay: int
    net_arch: tuple[int, ...] | list[int]
    actor_value: Literal["first", "min", "mean"]
    n_critics: int
    critic_subset: int
    layer_norm: bool
    dropout: float
    network: Literal["mlp", "simba"]
    simba_actor: tuple[int, int] | list[int]
    simba_critic: tuple[int, int] | list[int]
    normalise_observations: bool
    weight_decay: float
    critic_net_arch: tuple[int, ...] | list[int]
    activation: Literal["relu", "tanh", "elu", "leaky_relu", "silu", "gelu", "sigmoid"]
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class TD3(Agent, algo="td3"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[TD3Keywords],
    ) -> None: ...

class DisCorKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    tau: float
    ent_coef: str | float
    target_entropy: str | float
    net_arch: tuple[int, ...] | list[int]
    init: Literal["default", "rlkit", "xavier"]
    target_init: Literal["copy", "random"]
    loss_normaliser: Literal["rows", "mask"]
    weight_action: Literal["backup", "fresh"]
    alpha_in_target: Literal["before", "after"]
    alpha_loss: Literal["log", "alpha"]
    update_order: Literal["critic", "actor", "together"]
    policy_delay: int
    actor_value: Literal["min", "mean"]
    n_critics: int
    critic_subset: int
    layer_norm: bool
    dropout: float
    network: Literal["mlp", "simba"]
    simba_actor: tuple[int, int] | list[int]
    simba_critic: tuple[int, int] | list[int]
    normalise_observations: bool
    weight_decay: float
    critic_net_arch: tuple[int, ...] | list[int]
    activation: Literal["relu", "tanh", "elu", "leaky_relu", "silu", "gelu", "sigmoid"]
    discor_temperature: float
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class DisCor(Agent, algo="discor"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[DisCorKeywords],
    ) -> None: ...

class RainbowKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    adam_eps: float
    n_atoms: int
    v_min: float
    v_max: float
    distributional: bool
    dueling: bool
    noisy: bool
    noisy_std: float
    double: bool
    target_update_interval: int
    max_grad_norm: float
    net_arch: tuple[int, ...] | list[int]
    epsilon: float
    weight_value: Literal["double", "max"]
    augmentation: Literal["none", "shift"]
    contrastive: bool
    contrastive_weight: float
    shift_pad: int
    normalise_observations: bool
    sticky_actions: float
    full_action_space: bool
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class Rainbow(Agent, algo="rainbow"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[RainbowKeywords],
    ) -> None: ...

class DQNKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    adam_eps: float
    tau: float
    target_update_interval: int
    max_grad_norm: float
    exploration_fraction: float
    exploration_initial_eps: float
    exploration_final_eps: float
    net_arch: tuple[int, ...] | list[int]
    sticky_actions: float
    full_action_space: bool
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class DQN(Agent, algo="dqn"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[DQNKeywords],
    ) -> None: ...

class RADKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    alpha_learning_rate: float
    alpha_beta: float
    tau: float
    encoder_tau: float
    policy_delay: int
    target_update_interval: int
    actor_critic: Literal["before", "after"]
    ent_coef: str | float
    target_entropy: str | float
    net_arch: tuple[int, ...] | list[int]
    filters: int
    conv_layers: int
    feature_dim: int
    kernel_init: Literal["delta", "orthogonal"]
    normalise_observations: bool
    loss_normaliser: Literal["rows", "mask"]
    augmentation: Literal["crop", "translate", "none"]
    crop_size: int
    translate_size: int
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class RAD(Agent, algo="rad"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[RADKeywords],
    ) -> None: ...

class DrQKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    alpha_learning_rate: float
    alpha_beta: float
    tau: float
    encoder_tau: float
    policy_delay: int
    target_update_interval: int
    actor_critic: Literal["before", "after"]
    ent_coef: str | float
    target_entropy: str | float
    net_arch: tuple[int, ...] | list[int]
    filters: int
    conv_layers: int
    feature_dim: int
    kernel_init: Literal["delta", "orthogonal"]
    normalise_observations: bool
    loss_normaliser: Literal["rows", "mask"]
    shift_pad: int
    views: int
    target_views: int
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class DrQ(Agent, algo="drq"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[DrQKeywords],
    ) -> None: ...

class CURLKeywords(OthersKeywords, total=False):
    learning_rate: float | Callable[[float], float]
    alpha_learning_rate: float
    alpha_beta: float
    tau: float
    encoder_tau: float
    policy_delay: int
    target_update_interval: int
    actor_critic: Literal["before", "after"]
    ent_coef: str | float
    target_entropy: str | float
    net_arch: tuple[int, ...] | list[int]
    filters: int
    conv_layers: int
    feature_dim: int
    kernel_init: Literal["delta", "orthogonal"]
    normalise_observations: bool
    loss_normaliser: Literal["rows", "mask"]
    crop_size: int
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class CURL(Agent, algo="curl"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[CURLKeywords],
    ) -> None: ...

class RandomKeywords(OthersKeywords, total=False):
    pixels: bool
    camera: int
    render_size: int
    action_repeat: int
    frame_stack: int
    renderer: Literal["auto", "egl", "osmesa", "warp"]
    anti_aliasing: int | None
    shadow_size: int | None
    ensemble_size: int
    bootstrap_prob: float
    weight_temperature: float | Literal["auto"]
    ucb_lambda: float
    empty_masks: Literal["forced", "kept"]
    exploration: Literal["ucb", "member"]
    weighting: (
        Literal["auto", "confidence", "none", "random", "constant", "relative", "signal", "inverse_variance"] | str
    )
    weight_votes: Literal["own", "shared"]
    weight_normaliser: Literal["none", "mean"]
    terminal_weight: Literal["same", "one"]
    buffer_size: int
    learning_starts: int
    batch_size: int
    gamma: float
    train_freq: int | tuple[int, str]
    train_freq_unit: Literal["step", "episode"]
    gradient_steps: int
    warmup: Literal["uniform", "ensemble"]
    truncation: Literal["bootstrap", "terminal"]
    n_step: int
    prioritised: bool
    priority_exponent: float
    importance_start: float
    importance_horizon: int
    reward_noise: float
    normalise_rewards: bool
    prefill: str
    wrapper: str | tuple[str, ...] | list[str]
    seed: int | None
    num_envs: int
    vectorization: Literal["sync", "async"]
    eval_freq: int
    eval_episodes: int
    eval_max_steps: int
    eval_steps: int
    log_freq: int
    save_freq: int
    keep: int
    keep_replay: bool
    max_env_restarts: int
    env_timeout: float
    shard_members: bool
    eval_epsilon: float
    run_dir: str
    track: bool
    wandb_project_name: str
    wandb_entity: str
    mlflow: bool

class Random(Agent, algo="random"):
    def __init__(
        self,
        policy: str,
        env: EnvArgument | None,
        *,
        preset: str | None = None,
        policy_kwargs: Mapping[str, Any] | None = None,
        tensorboard_log: str | None = None,
        verbose: int = 0,
        eval_env: str | AnyEnv | Maker | None = None,
        device: str = "auto",
        **settings: Unpack[RandomKeywords],
    ) -> None: ...

AGENTS: dict[str, type[Agent]]
