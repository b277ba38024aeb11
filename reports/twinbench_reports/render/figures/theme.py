"""Colours and type of the figures. SVG is drawn in sentinel colours, which then become CSS variables."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass(frozen=True)
class Palette:
    """Every colour a figure may use, by its role."""

    ink: str
    muted: str
    rule: str
    stripe: str
    surface: str
    blue: str  # the optimized variant, and what is faster
    vermillion: str  # what failed or is slower
    green: str  # what passed; ceilings
    purple: str  # the library variant; what is undecided
    ochre: str  # what is modelled, not measured


# The hues of Okabe and Ito (safe for the colour-blind), each as dark or light as 3:1 on its page and on striped rows
# asks.
LIGHT = Palette("#14181f", "#59636f", "#d5dae1", "#f4f6f8", "#ffffff", "#0072b2", "#d55e00", "#00875f",
                "#b1568c", "#8a6500")
DARK = Palette("#e9ecf0", "#9aa5b2", "#323b46", "#1b2129", "#151a21", "#56b4e9", "#e8762d", "#1fb58b",
               "#d68fb6", "#d9a72c")
SENTINEL = Palette("#010a01", "#020a02", "#030a03", "#040a04", "#050a05", "#060a06", "#070a07", "#080a08",
                   "#090a09", "#0a0a0b")
VARIABLES = {sentinel: f"var(--{role})" for role, sentinel in asdict(SENTINEL).items()}


def css_variables(palette: Palette) -> str:
    """The palette as CSS custom properties."""
    return "".join(f"--{role}:{colour};" for role, colour in asdict(palette).items())


RC = {
    "svg.hashsalt": "twinbench",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "axes.linewidth": 0.8,
    "xtick.major.width": 0.8,
    "ytick.major.size": 0,
    "xtick.minor.visible": False,
    "path.simplify": True,
    "figure.dpi": 72,
    "text.parse_math": False, }
WIDTH = 9.6  # inches; 72 points each
