"""Where an ensemble lives: all of it on one device, or its members spread over several.

The member axis is the leading one of every member's array, so it can be cut anywhere; what members share is on every
device, and so is what they are given.
"""

import logging
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeVar

import jax
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from sunrise.compilation import find_device
from sunrise.ensemble.members import Ensemble
from sunrise.errors import SunriseError

T = TypeVar("T")
log = logging.getLogger("sunrise")
NO_MESH = "none"
"""The mesh of an ensemble on one device, in config.json."""


class Placement(NamedTuple):
    """Where the arrays of an ensemble are."""

    members: Sharding
    """Of arrays with a leading axis of members."""
    shared: Sharding
    """Of what all members share."""
    mesh: str
    """The axes of devices and their lengths, as config.json has them."""

    @property
    def first(self) -> jax.Device:
        """The first device, which makes what is then spread."""
        devices: set[Any] = self.shared.device_set
        return min(devices, key=lambda device: device.id)

    @property
    def of_ensemble(self) -> Any:
        """Where each part of an ensemble is."""
        return Ensemble(self.members, self.shared, self.shared)  # type: ignore[arg-type]

    def put(self, ensemble: Ensemble) -> Ensemble:
        """An ensemble, put in its place."""
        placed: Ensemble = jax.device_put(ensemble, self.of_ensemble)
        return placed

    def put_shared(self, tree: T) -> T:
        """What all members share, put in its place."""
        placed: T = jax.device_put(tree, self.shared)
        return placed


def on_device(device: jax.Device) -> Placement:
    """All of an ensemble on one device."""
    there = SingleDeviceSharding(device)
    return Placement(there, there, NO_MESH)


def over_devices(devices: Sequence[jax.Device], members: int) -> Placement:
    """The members in equal parts over as many of the devices as that is possible for."""
    used = max(count for count in range(1, len(devices) + 1) if members % count == 0)
    mesh = Mesh(devices[:used], ("members",))
    parts, everywhere = (NamedSharding(mesh, PartitionSpec(*axes)) for axes in (("members",), ()))  # type: ignore[no-untyped-call]
    return Placement(parts, everywhere, f"members={used}")


def place(device: str, members: int, shard: bool) -> Placement:
    """Where so many members are to be: on the device of that name, or `shard`ed over all those of its platform."""
    first = find_device(device)
    if not shard:
        return on_device(first)
    platform, _, number = device.partition(":")
    if number:
        raise SunriseError(
            f"device is {device!r}, but shard_members spreads the members over all devices of a platform: give "
            f"device={platform!r}, or no shard_members."
        )
    devices = jax.local_devices(backend=first.platform)
    placement = over_devices(devices, members)
    used = len(placement.shared.device_set)
    log.info("%d members over %d of %d devices, %d on each.", members, used, len(devices), members // used)
    return placement
