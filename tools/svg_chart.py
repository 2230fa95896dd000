# SPDX-License-Identifier: Apache-2.0
"""A chart of lines with named points as SVG text: no library draws it, and any browser shows it."""
import math
from html import escape

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 760, 440, 60, 190, 40, 50
PALETTE = ("#1f6fb2", "#c2410c", "#15803d", "#7c3aed", "#666666", "#b45309")


def ticks(low, high, log):
    if log:
        steps = [m * 10.0 ** e for e in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1) for m in (1, 2, 5)]
        return [t for t in steps if low <= t <= high]
    step = 10 ** math.floor(math.log10((high - low) / 2))
    while (high - low) / step > 8:
        step *= 2
    return [k * step for k in range(math.ceil(low / step), math.floor(high / step) + 1)]


def free_place(x, y, label, taken):
    """Where a label beside a point covers no other: its anchor, x and y. What is taken grows by its box."""
    wide = 7 * len(label)
    for up, left in ((6, 0), (-16, 0), (6, 1), (-16, 1), (20, 0), (-30, 0), (34, 0), (-44, 0)):
        box = (x - 6 - wide if left else x + 6, y - up - 11, x - 6 if left else x + 6 + wide, y - up + 2)
        if not any(box[0] < b[2] and b[0] < box[2] and box[1] < b[3] and b[1] < box[3] for b in taken):
            break
    taken.append(box)
    return "end" if left else "start", x - 6 if left else x + 6, y - up


def chart(title, x_name, y_name, lines, log=False, colours=None):
    """lines: (name, [(x, y, label)]), joined in the order of x."""
    points = [p for _, line in lines for p in line]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    x_low, x_high = (min(xs) / 1.25, max(xs) * 1.25) if log else (min(xs), max(xs))
    margin = max((max(ys) - min(ys)) * 0.08, 0.1)
    y_low, y_high = min(ys) - margin, max(ys) + margin
    scale = math.log if log else float

    def at(x, y):
        across = (scale(x) - scale(x_low)) / (scale(x_high) - scale(x_low))
        return LEFT + across * (WIDTH - LEFT - RIGHT), TOP + (y_high - y) / (y_high - y_low) * (HEIGHT - TOP - BOTTOM)

    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" font-size="12" role="img">',
           f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
           f'<text x="{LEFT}" y="22" font-size="14" font-weight="bold">{escape(title)}</text>']
    for t in ticks(x_low, x_high, log):
        x, _ = at(t, y_low)
        out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="#e5e5e5"/>')
        out.append(f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{t:g}</text>')
    for t in ticks(y_low, y_high, False):
        _, y = at(x_high, t)
        out.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e5e5e5"/>')
        out.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{t:g}</text>')
    middle = (LEFT + WIDTH - RIGHT) / 2
    out.append(f'<text x="{middle}" y="{HEIGHT - 12}" text-anchor="middle">{escape(x_name)}</text>')
    out.append(f'<text transform="translate(16 {(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)" text-anchor="middle">{escape(y_name)}</text>')
    taken = [(x - 4, y - 4, x + 4, y + 4) for x, y in (at(*p[:2]) for p in points)]
    for i, (name, line) in enumerate(lines):
        colour = (colours or {}).get(name, PALETTE[i % len(PALETTE)])
        places = [(*at(x, y), label) for x, y, label in sorted(line)]
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
        out.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.5" opacity="0.6"/>')
        for x, y, label in places:
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
            anchor, across, down = free_place(x, y, label, taken)
            out.append(f'<text x="{across:.1f}" y="{down:.1f}" text-anchor="{anchor}" fill="{colour}">{escape(label)}</text>')
        y = TOP + 16 + 18 * i
        out.append(f'<circle cx="{WIDTH - RIGHT + 20}" cy="{y - 4}" r="4" fill="{colour}"/>')
        out.append(f'<text x="{WIDTH - RIGHT + 32}" y="{y}">{escape(name)}</text>')
    return "\n".join([*out, "</svg>"]) + "\n"
