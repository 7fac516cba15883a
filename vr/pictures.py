"""What the cell's cameras see, as small pictures; a camera that gave none shows that it did not."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
from imgui_bundle import imgui
from OpenGL import GL

from vr import style
from vr.camera_view import Rect
from vr.style import u32
from vr.widgets import Ui

Pictures = Mapping[str, npt.NDArray[np.uint8] | None]
"""By name of the picture: (h, w, 3) uint8, or None while there is none."""


class PictureWall:
    """The textures of the pictures; a picture is uploaded when it is another array than before."""

    def __init__(self) -> None:
        self._textures: dict[str, int] = {}
        self._shown: dict[str, npt.NDArray[np.uint8]] = {}

    def draw(self, ui: Ui, rect: Rect, pictures: Pictures) -> None:
        """Draw all pictures in rows of two."""
        with ui.area("cameras", rect, scroll=len(pictures) > 4):
            gap = imgui.get_style().item_spacing
            rows = max((min(len(pictures), 4) + 1) // 2, 1)
            room = imgui.get_content_region_avail()
            width = 0.5 * (room.x - gap.x)
            height = (room.y - (rows - 1) * gap.y) / rows
            for i, (name, picture) in enumerate(pictures.items()):
                if i % 2:
                    imgui.same_line()
                self._one(ui, name, picture, width, height)

    def free(self) -> None:
        """Give the textures back."""
        if self._textures:
            GL.glDeleteTextures(list(self._textures.values()))
        self._textures.clear()
        self._shown.clear()

    def _one(
        self,
        ui: Ui,
        name: str,
        picture: npt.NDArray[np.uint8] | None,
        width: float,
        height: float,
    ) -> None:
        x, y = imgui.get_cursor_screen_pos()
        draw = imgui.get_window_draw_list()
        draw.add_rect_filled((x, y), (x + width, y + height), u32(style.FIELD), ui.px(5.0))
        if picture is None:
            with ui.face(False, style.SMALL_PX):
                words = "no picture"
                size = imgui.calc_text_size(words)
                at = (x + 0.5 * (width - size.x), y + 0.5 * (height - size.y))
                draw.add_text(at, u32(style.FAINT), words)
        else:
            self._upload(name, picture)
            h, w = picture.shape[:2]
            scale = min(width / w, height / h)
            left, top = x + 0.5 * (width - scale * w), y + 0.5 * (height - scale * h)
            texture = imgui.ImTextureRef(self._textures[name])
            draw.add_image(texture, (left, top), (left + scale * w, top + scale * h))
        with ui.face(True, style.SMALL_PX):
            size = imgui.calc_text_size(name)
            pad = ui.px(4.0)
            draw.add_rect_filled(
                (x, y), (x + size.x + 2.0 * pad, y + size.y + pad), u32(style.PAGE, 0.75), pad
            )
            draw.add_text((x + pad, y + 0.5 * pad), u32(style.INK), name)
        imgui.dummy((width, height))

    def _upload(self, name: str, picture: npt.NDArray[np.uint8]) -> None:
        if self._shown.get(name) is picture:
            return
        if name not in self._textures:
            self._textures[name] = int(GL.glGenTextures(1))
        GL.glBindTexture(GL.GL_TEXTURE_2D, self._textures[name])
        for key, value in (
            (GL.GL_TEXTURE_MIN_FILTER, GL.GL_LINEAR),
            (GL.GL_TEXTURE_MAG_FILTER, GL.GL_LINEAR),
            (GL.GL_TEXTURE_WRAP_S, GL.GL_CLAMP_TO_EDGE),
            (GL.GL_TEXTURE_WRAP_T, GL.GL_CLAMP_TO_EDGE),
        ):
            GL.glTexParameteri(GL.GL_TEXTURE_2D, key, value)
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 1)
        height, width = picture.shape[:2]
        GL.glTexImage2D(
            GL.GL_TEXTURE_2D,
            0,
            GL.GL_RGB,
            width,
            height,
            0,
            GL.GL_RGB,
            GL.GL_UNSIGNED_BYTE,
            np.ascontiguousarray(picture),
        )
        GL.glPixelStorei(GL.GL_UNPACK_ALIGNMENT, 4)
        GL.glBindTexture(GL.GL_TEXTURE_2D, 0)
        self._shown[name] = picture
