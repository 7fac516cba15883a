"""The window itself: GLFW, an OpenGL context that MuJoCo's renderer can use, Dear ImGui on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import glfw
from imgui_bundle import imgui, implot
from imgui_bundle.python_backends.glfw_backend import GlfwRenderer
from OpenGL import GL

from brain.errors import ConfigError

SMALLEST_PX = (900, 620)
SOFTWARE = ("llvmpipe", "softpipe", "swr", "software")
HELD_KEYS = (glfw.KEY_SPACE, glfw.KEY_ENTER, glfw.KEY_KP_ENTER)
DOUBLE_CLICK_S = 0.6
"""Longer than usual: where frames come slowly, clicks are seen frame by frame."""
REPEAT_S = 1.0
"""A key that is still held when the window gets the focus back is heard again within this time."""
ADVICE = "run with --seat none to go without a window"


class Window:
    """An open window with its user interface's state.

    `size` is in window coordinates, `pixels` in those of the framebuffer; `scale` is how much
    larger than on a 1:1 display things have to be drawn, in window coordinates.
    """

    def __init__(self, title: str, size: tuple[int, int], on_press: Callable[[int], None]) -> None:
        """Open it; `on_press` is told each key that goes down, at once.

        Raises:
            ConfigError: there is no display, or none that can draw.
        """
        self.handle = _open(title, size)
        self._on_press = on_press
        self.size = self.pixels = size
        self.pixels_per_unit = self.scale = 1.0
        self.refresh()
        self._mouse: tuple[float, float] = (0.0, 0.0)
        self._lost: set[int] = set()
        self._focus_s = 0.0
        renderer = GL.glGetString(GL.GL_RENDERER)
        self.renderer = "" if renderer is None else renderer.decode()
        self.software = any(name in self.renderer.lower() for name in SOFTWARE)
        imgui.create_context()
        implot.create_context()
        imgui.get_io().set_ini_filename("")
        imgui.get_io().set_log_filename("")
        imgui.get_io().mouse_double_click_time = DOUBLE_CLICK_S
        imgui.get_io().mouse_single_click_delay = DOUBLE_CLICK_S + 0.1
        self._inputs = _Inputs(self.handle)
        imgui.backends.opengl3_init("#version 130")
        glfw.set_key_callback(self.handle, self._key)
        glfw.set_window_focus_callback(self.handle, self._focus)
        glfw.set_window_iconify_callback(self.handle, self._iconify)
        self._focused = bool(glfw.get_window_attrib(self.handle, glfw.FOCUSED))
        self._iconified = bool(glfw.get_window_attrib(self.handle, glfw.ICONIFIED))

    def refresh(self) -> None:
        """Look how large the window is now, once per frame: the display server has to be asked."""
        content, _ = glfw.get_window_content_scale(self.handle)
        width, height = glfw.get_window_size(self.handle)
        across, down = glfw.get_framebuffer_size(self.handle)
        self.size = (int(width), int(height))
        self.pixels = (int(across), int(down))
        self.pixels_per_unit = float(across) / max(width, 1)
        self.scale = max(float(content) / max(self.pixels_per_unit, 1e-3), 0.5)

    @property
    def attended(self) -> bool:
        """Whether keys go to this window and it can be seen."""
        return self._focused and not self._iconified

    @property
    def closing(self) -> bool:
        """Whether the person has closed it."""
        return bool(glfw.window_should_close(self.handle))

    def holds(self, key: int) -> bool:
        """Whether a key is held down.

        A window that loses the focus lets all keys go. When it comes back, a key that was held is
        heard again as if it were pressed anew, for it repeats: it counts only after it was let go.
        """
        if key in self._lost or not self.attended:
            return False
        return bool(glfw.get_key(self.handle, key) == glfw.PRESS)

    def listen(self) -> None:
        """Take the events that have arrived."""
        glfw.poll_events()

    def listen_for(self, seconds: float) -> None:
        """Wait for events, at most so long, and take them."""
        glfw.wait_events_timeout(max(seconds, 1e-4))

    def mouse_moved(self) -> bool:
        """Whether the mouse is elsewhere than at the last look, or a button of it is down."""
        at = glfw.get_cursor_pos(self.handle)
        moved, self._mouse = at != self._mouse, at
        buttons = (glfw.MOUSE_BUTTON_LEFT, glfw.MOUSE_BUTTON_RIGHT)
        return moved or any(glfw.get_mouse_button(self.handle, b) == glfw.PRESS for b in buttons)

    def begin(self) -> None:
        """Begin the user interface's frame."""
        imgui.backends.opengl3_new_frame()
        self._inputs.process_inputs()
        imgui.new_frame()

    def end(self) -> None:
        """Draw the user interface over what is there, and show the frame."""
        imgui.render()
        imgui.backends.opengl3_render_draw_data(imgui.get_draw_data())
        glfw.swap_buffers(self.handle)

    def close(self) -> None:
        """Take it down."""
        imgui.backends.opengl3_shutdown()
        implot.destroy_context()
        imgui.destroy_context()
        glfw.destroy_window(self.handle)
        glfw.terminate()

    def _focus(self, window: Any, focused: int) -> None:
        self._focused = bool(focused)
        self._focus_s = glfw.get_time()
        if not focused:  # GLFW lets the keys go only after this
            self._lost |= {k for k in HELD_KEYS if glfw.get_key(window, k) == glfw.PRESS}

    def _iconify(self, window: Any, iconified: int) -> None:
        del window
        self._iconified = bool(iconified)

    def _key(self, window: Any, key: int, scancode: int, action: int, mods: int) -> None:
        self._inputs.keyboard_callback(window, key, scancode, action, mods)
        if action == glfw.PRESS:
            if glfw.get_time() - self._focus_s > REPEAT_S:
                self._lost.discard(key)
            self._on_press(key)
        elif action == glfw.RELEASE and self._focused:
            self._lost.discard(key)


class _Inputs(GlfwRenderer):  # type: ignore[misc]
    """The bundle's way from GLFW to Dear ImGui without its drawing through PyOpenGL.

    That needs PyOpenGL's own idea of the current context, which is another platform's where MuJoCo
    was told to draw without a window (MUJOCO_GL=egl); the native drawing does not.
    """

    def _create_device_objects(self) -> None:
        """Leave it to the native drawing."""


def _open(title: str, size: tuple[int, int]) -> Any:
    errors: list[str] = []

    def note(code: int, words: str | bytes) -> None:
        errors.append(words.decode(errors="replace") if isinstance(words, bytes) else words)

    glfw.set_error_callback(note)
    if not glfw.init():
        raise ConfigError(f"no display to open a window on ({_last(errors)}); {ADVICE}")
    glfw.window_hint(glfw.SCALE_TO_MONITOR, glfw.TRUE)
    handle = glfw.create_window(*size, title, None, None)
    if not handle:
        glfw.terminate()
        raise ConfigError(f"this display cannot draw a window ({_last(errors)}); {ADVICE}")
    glfw.set_window_size_limits(handle, *SMALLEST_PX, glfw.DONT_CARE, glfw.DONT_CARE)
    glfw.make_context_current(handle)
    glfw.swap_interval(1)
    return handle


def _last(errors: list[str]) -> str:
    return errors[-1].removeprefix("X11: ") if errors else "no reason given"
