"""From a MuJoCo state to a picture: OpenGL through EGL or OSMesa, or mujoco-warp's ray tracer on the CPU.

OpenGL makes the pictures of published results, but needs a driver. The ray tracer comes with pip and is several times
faster than OpenGL in software, but its picture is not the same: no reflections, no tendons, no sites.
We hold the OpenGL contexts ourselves, and not through dm_control, which fixes its choice when it is imported.
"""

import atexit
import importlib
import math
import os
import subprocess
import sys
import threading
import warnings
import weakref
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, Protocol, get_args

import mujoco
import numpy as np

from sunrise.config.tasks import RendererChoice, RendererName
from sunrise.errors import MissingExtraError, SunriseError, near

PACKAGES: dict[str, str] = {"egl": "libegl1 libopengl0 libgl1-mesa-dri", "osmesa": "libosmesa6"}

PROBE = """
import importlib, sys, mujoco
gl = importlib.import_module("mujoco." + sys.argv[1]).GLContext(8, 8)
gl.make_current()
mujoco.MjrContext(mujoco.MjModel.from_xml_string("<mujoco/>"), mujoco.mjtFontScale.mjFONTSCALE_100).free()
gl.free()
"""


class View(NamedTuple):
    """What to draw, and how well."""

    camera: int
    size: int
    """Height and width in pixels."""
    anti_aliasing: int | None = None
    """Samples of a pixel; None is the model's own number in OpenGL (4), and 1 in warp."""
    shadow_size: int | None = None
    """Side of the shadow map, 0 for no shadows; None is the model's own (2048). Warp traces shadows: 0 or not."""


class Renderer(Protocol):
    """Draws the present state of one simulation."""

    def frame(self) -> np.ndarray:
        """A fresh picture: uint8 [size, size, 3]."""

    def close(self) -> None:
        """Give back what the driver holds; may be called twice."""


@cache
def works(name: str) -> bool:
    """Whether OpenGL can be had in this way; tried in a process of its own, as a failure spoils the one it is in."""
    try:
        subprocess.run([sys.executable, "-c", PROBE, name], check=True, capture_output=True, timeout=60)
    except subprocess.SubprocessError:
        return False
    return True


def resolve(choice: RendererChoice) -> RendererName:
    """The renderer a choice stands for on this machine; OpenGL where there is any, else warp."""
    if choice not in get_args(RendererChoice):
        raise SunriseError(f"there is no renderer {choice!r}.{near(choice, get_args(RendererChoice))}")
    if choice == "auto":
        order: tuple[RendererName, ...] = ("egl", "osmesa")
        if os.environ.get("MUJOCO_GL") == "osmesa":
            order = ("osmesa", "egl")
        return next((name for name in order if works(name)), "warp")
    if choice != "warp" and not works(choice):
        raise SunriseError(
            f"the renderer {choice!r} does not work on this machine: "
            f"`apt install {PACKAGES[choice]}`, or take the renderer 'warp': no driver, but other pictures."
        )
    return choice


def make_renderer(name: RendererName, model: Any, data: Any, view: View) -> Renderer:
    """A renderer of `data`. It copies sizes, colours and height fields of `model` now, and poses at each frame."""
    return WarpRenderer(model, data, view) if name == "warp" else GLRenderer(name, model, data, view)


OPEN: "weakref.WeakSet[GLRenderer]" = weakref.WeakSet()
GL_PROCESSES: set[int] = set()
"""The process that first used OpenGL; a process forked from it would wait for ever for the driver's threads."""


LEFT: list[tuple[int, Any, Any]] = []
"""Thread, MuJoCo's context and OpenGL's, of renderers that were collected as garbage in another thread than theirs."""


def free_left() -> None:
    """Free what was left for this thread: a context can only be made current where it is, or nowhere is."""
    for entry in [entry for entry in LEFT if entry[0] == threading.get_ident()]:
        LEFT.remove(entry)
        free(*entry[1:])


def free(context: Any, gl: Any) -> None:
    """With another context current, MuJoCo would free what belongs to that one."""
    gl.make_current()
    context.free()
    gl.free()


def close_all() -> None:
    """At exit, free the contexts that nobody closed."""
    free_left()
    for renderer in list(OPEN):
        renderer.close()


class GLRenderer:
    """MuJoCo's own renderer, off screen; the same picture as dm_control's `physics.render`."""

    def __init__(self, name: RendererName, model: Any, data: Any, view: View) -> None:
        self.gl: Any = None
        if GL_PROCESSES and os.getpid() not in GL_PROCESSES:
            raise SunriseError(
                "this process was forked from one that had used OpenGL, which does not survive that: start the "
                "environments with 'spawn' or 'forkserver', or choose the renderer 'warp'."
            )
        GL_PROCESSES.add(os.getpid())
        free_left()
        visual = model.vis
        visual.global_.offwidth = max(visual.global_.offwidth, view.size)
        visual.global_.offheight = max(visual.global_.offheight, view.size)
        if view.anti_aliasing is not None:
            visual.quality.offsamples = view.anti_aliasing
        if view.shadow_size is not None:
            visual.quality.shadowsize = view.shadow_size
        self.model, self.data = model, data
        gl = importlib.import_module(f"mujoco.{name}").GLContext(view.size, view.size)
        gl.make_current()
        self.thread = threading.get_ident()
        self.context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_100)
        self.gl = gl
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN, self.context)
        self.scene = mujoco.MjvScene(model, maxgeom=10_000)
        self.option = mujoco.MjvOption()
        self.camera = mujoco.MjvCamera()
        self.camera.type, self.camera.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, view.camera
        self.rectangle = mujoco.MjrRect(0, 0, view.size, view.size)
        OPEN.add(self)
        # The last to register is the first to run: our contexts must go before EGL's display, registered just now.
        atexit.unregister(close_all)
        atexit.register(close_all)

    def frame(self) -> np.ndarray:
        self.gl.make_current()
        self.thread = threading.get_ident()
        everything = mujoco.mjtCatBit.mjCAT_ALL
        mujoco.mjv_updateScene(self.model, self.data, self.option, None, self.camera, everything, self.scene)
        mujoco.mjr_render(self.rectangle, self.scene, self.context)
        pixels = np.empty((self.rectangle.height, self.rectangle.width, 3), np.uint8)
        mujoco.mjr_readPixels(pixels, None, self.rectangle, self.context)
        return np.ascontiguousarray(pixels[::-1])

    def close(self) -> None:
        if self.gl is not None:
            free(self.context, self.gl)
            self.gl = None

    def __del__(self) -> None:
        if self.gl is not None and self.thread != threading.get_ident():
            LEFT.append((self.thread, self.context, self.gl))
        else:
            self.close()


@cache
def import_warp() -> tuple[Any, Any]:
    """Warp and mujoco_warp, without their greeting or, from C, their regret that there is no CUDA."""
    try:
        import mujoco_warp
        import warp
    except ModuleNotFoundError:
        raise MissingExtraError("the renderer 'warp'", "dmc") from None
    warp.config.log_level = warp.LOG_ERROR
    stderr = os.dup(2)
    try:
        with Path(os.devnull).open("w") as nothing:
            os.dup2(nothing.fileno(), 2)
        warp.init()
    finally:
        os.dup2(stderr, 2)
        os.close(stderr)
    return warp, mujoco_warp


class WarpRenderer:
    """mujoco-warp's ray tracer, always on the CPU; the first use of a kind of scene compiles it, for some seconds."""

    POSES = ("geom_xpos", "geom_xmat", "cam_xpos", "cam_xmat", "light_xpos", "light_xdir")

    def __init__(self, model: Any, data: Any, view: View) -> None:
        target = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SITE, "target")
        if target >= 0 and model.site_group[target] <= 2 and model.site_rgba[target, 3] > 0:
            raise SunriseError(
                "the target of this task is a site, which the renderer 'warp' cannot draw, so that no agent could see "
                f"it: `apt install {PACKAGES['egl']}` and choose the renderer 'egl'."
            )
        self.warp, self.mujoco_warp = import_warp()
        self.size, mujoco_warp = view.size, self.mujoco_warp
        with self.warp.ScopedDevice("cpu"), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about frictions: no physics are computed here
            self.model, self.state = mujoco_warp.put_model(model), mujoco_warp.make_data(model)
            self.context = mujoco_warp.create_render_context(
                model,
                cam_res=(view.size, view.size),
                cam_active=[view.camera],
                render_rgb=True,
                use_shadows=view.shadow_size != 0,
                render_skybox=True,
                samples_per_pixel=max(1, round(math.sqrt(view.anti_aliasing or 1))),
            )
        # On the CPU these are views: what is written to one, the kernels read.
        ours = [getattr(self.state, name).numpy()[0] for name in self.POSES]
        self.poses = [(a, getattr(data, name).reshape(a.shape)) for a, name in zip(ours, self.POSES, strict=True)]
        self.pixels = self.context.rgb_data.numpy()

    def frame(self) -> np.ndarray:
        for ours, theirs in self.poses:
            ours[...] = theirs
        with self.warp.ScopedDevice("cpu"):
            # The tree of bounding boxes must follow the poses, or limbs that left their first box are not drawn.
            self.mujoco_warp.refit_bvh(self.model, self.state, self.context)
            self.mujoco_warp.render(self.model, self.state, self.context)
        bgra = self.pixels.view(np.uint8).reshape(self.size, self.size, 4)
        return np.ascontiguousarray(bgra[..., 2::-1])

    def close(self) -> None:
        """Nothing is held outside of Python."""
