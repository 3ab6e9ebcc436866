//! The common look of every picture: one style sheet for light and dark, and a few SVG elements.
//!
//! Styles are plain rules under one class rather than custom properties, because several viewers,
//! librsvg among them, do not support `var()`. All rules are under one class, so that a picture
//! inlined in a page does not restyle the page.

use std::fmt::{self, Display, Write};

use crate::numbers::grouped;

/// A place on a picture: pixels to the right, and pixels down.
pub(crate) type Point = (f64, f64);

/// The number of colours for message kinds and curves. They are those of Okabe and Ito, which
/// colour-blind readers can tell apart, a little darker on white and a little lighter on black.
pub(crate) const COLOURS: usize = COLOUR_PAIRS.len();

/// Each colour on a light and on a dark page.
const COLOUR_PAIRS: [(&str, &str); 7] = [
    ("#0072b2", "#4ba3e3"),
    ("#c67c00", "#f0b03a"),
    ("#009e73", "#2cc79b"),
    ("#b65590", "#e093c0"),
    ("#c34a00", "#f5804a"),
    ("#2f96d3", "#a5dcff"),
    ("#6b7280", "#b3bac4"),
];

/// The other colours: class, property, value on a light page, value on a dark page.
const RULES: [(&str, &str, &str, &str); 16] = [
    ("page", "fill", "#ffffff", "#0d1117"),
    ("page", "stroke", "#d5dae1", "#30363d"),
    ("text", "fill", "#1f2933", "#e6edf3"),
    ("soft", "fill", "#5b6673", "#9aa5b1"),
    ("halo", "stroke", "#ffffff", "#0d1117"),
    ("grid", "stroke", "#e7eaee", "#20262e"),
    ("lane", "stroke", "#868f9a", "#5b6673"),
    ("mark", "stroke", "#1f2933", "#e6edf3"),
    ("knock", "fill", "#ffffff", "#0d1117"),
    ("inside", "fill", "#33404f", "#dde4ec"),
    ("shared", "fill", "#7f8fa1", "#8fa0b3"),
    ("waiting", "stroke", "#7f8b98", "#7f8b98"),
    ("hatch", "stroke", "#7f8b98", "#7f8b98"),
    ("dot", "fill", "#5b6673", "#9aa5b1"),
    ("bad", "stroke", "#d1001f", "#ff5c6c"),
    ("alarm", "fill", "#b8001b", "#ff8a95"),
];

/// The rules that are the same on light and dark pages.
const SHAPES: &str = "\
.doorway text{font-family:system-ui,-apple-system,'Segoe UI',Helvetica,Arial,sans-serif;\
font-size:12px}
.doorway .title{font-size:16px;font-weight:600}
.doorway .end{text-anchor:end}.doorway .mid{text-anchor:middle}.doorway .alarm{font-weight:600}
.doorway .halo{stroke-width:3px;stroke-linejoin:round;paint-order:stroke}
.doorway .grid,.doorway .lane{stroke-width:1;fill:none}
.doorway .mark,.doorway .bad{stroke-width:2;fill:none;stroke-linecap:round}
.doorway .waiting{fill:url(#doorway-hatch)}.doorway .hatch{stroke-width:1.2}
.doorway .arrow,.doorway .head{stroke-width:1.4;stroke-linejoin:round}
.doorway .stub,.doorway .lost{stroke-width:1.5;fill:none}.doorway .stub{stroke-dasharray:2 3}
.doorway .curve{stroke-width:2;fill:none;stroke-linejoin:round}
.doorway .formula{stroke-width:6;fill:none;stroke-dasharray:9 4;opacity:.35}
.doorway .error,.doorway .leader{stroke-width:1;fill:none}.doorway .leader{opacity:.5}
.doorway .dash1{stroke-dasharray:7 3}.doorway .dash2{stroke-dasharray:2 3}
";

/// A picture that is being drawn.
#[derive(Default)]
pub(crate) struct Canvas {
    body: String,
}

impl Canvas {
    /// A straight line.
    pub(crate) fn line(&mut self, class: &str, from: Point, to: Point) {
        let ((x1, y1), (x2, y2)) = (from, to);
        self.add(format_args!(
            "<path class=\"{class}\" d=\"M{} {}L{} {}\"/>\n",
            Px(x1),
            Px(y1),
            Px(x2),
            Px(y2)
        ));
    }

    /// Any shape, with a tip: the text that is shown when a pointer rests on it.
    pub(crate) fn path(&mut self, class: &str, shape: &str, tip: &str) {
        self.add(format_args!("<path class=\"{class}\" d=\"{shape}\">{}</path>\n", Tip(tip)));
    }

    /// A rectangle, its corners slightly rounded, with its tip.
    pub(crate) fn bar(&mut self, class: &str, (x, y): Point, (width, height): Point, tip: &str) {
        let (x, y, width, height) = (Px(x), Px(y), Px(width), Px(height));
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" \
             rx=\"2\">{}</rect>\n",
            Tip(tip)
        ));
    }

    /// A circle.
    pub(crate) fn circle(&mut self, class: &str, (x, y): Point, radius: f64) {
        let (x, y, radius) = (Px(x), Px(y), Px(radius));
        self.add(format_args!(
            "<circle class=\"{class}\" cx=\"{x}\" cy=\"{y}\" r=\"{radius}\"/>\n"
        ));
    }

    /// A line of text, standing on its baseline.
    pub(crate) fn text(&mut self, class: &str, (x, y): Point, text: &str) {
        let (x, y, text) = (Px(x), Px(y), XmlText(text));
        self.add(format_args!("<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{text}</text>\n"));
    }

    /// A line of text followed by a remark in a softer colour.
    pub(crate) fn remarked(&mut self, (x, y): Point, text: &str, remark: &str) {
        let (x, y, text, remark) = (Px(x), Px(y), XmlText(text), XmlText(remark));
        self.add(format_args!(
            "<text class=\"text\" x=\"{x}\" y=\"{y}\">{text}\
             <tspan class=\"soft\" xml:space=\"preserve\">{remark}</tspan></text>\n"
        ));
    }

    /// A line of text turned about the middle of its baseline, in degrees clockwise.
    pub(crate) fn turned(&mut self, class: &str, (x, y): Point, degrees: f64, text: &str) {
        let (x, y, degrees, text) = (Px(x), Px(y), Px(degrees), XmlText(text));
        self.add(format_args!(
            "<text class=\"{class} mid\" transform=\"translate({x} {y})rotate({degrees})\">\
             {text}</text>\n"
        ));
    }

    /// The whole file: title and description for screen readers, then the drawing.
    pub(crate) fn finish(self, (width, height): Point, title: &str, description: &str) -> String {
        let (width, height) = (Px(width.ceil()), Px(height.ceil()));
        let (title, description, style) = (XmlText(title), XmlText(description), style());
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"doorway\" role=\"img\" \
             width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\">\n\
             <title>{title}</title>\n<desc>{description}</desc>\n<style>\n{style}</style>\n\
             <defs><pattern id=\"doorway-hatch\" width=\"5\" height=\"5\" \
             patternUnits=\"userSpaceOnUse\" patternTransform=\"rotate(45)\">\
             <path class=\"hatch\" d=\"M0 0V5\"/></pattern></defs>\n\
             <rect class=\"page\" x=\"0.5\" y=\"0.5\" width=\"{}\" height=\"{}\" rx=\"8\"/>\n\
             {}</svg>\n",
            Px(width.0 - 1.0),
            Px(height.0 - 1.0),
            self.body
        )
    }

    fn add(&mut self, element: fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes everything");
    }
}

/// The style sheet: the common rules, the light colours, and the dark ones that override them.
fn style() -> String {
    let rules = |dark: bool| {
        let pick = |light, night| if dark { night } else { light };
        let fixed = RULES.map(|(class, property, light, night)| {
            format!(".doorway .{class}{{{property}:{}}}", pick(light, night))
        });
        let numbered = COLOUR_PAIRS.iter().enumerate().map(|(number, (light, night))| {
            let colour = pick(light, night);
            let filled =
                ["arrow.c", "head.c", "f"].map(|class| format!(".doorway .{class}{number}"));
            let filled = filled.join(",");
            format!(".doorway .c{number}{{stroke:{colour}}}{filled}{{fill:{colour}}}")
        });
        fixed.into_iter().chain(numbered).collect::<Vec<_>>().concat()
    };
    let (light, dark) = (rules(false), rules(true));
    format!("{SHAPES}{light}\n@media(prefers-color-scheme:dark){{{dark}}}\n")
}

/// The colours as custom properties of a page: `--text-fill`, `--c0` and so on.
pub(crate) fn page_colours() -> String {
    let colours = |dark: bool| {
        let pick = |light, night| if dark { night } else { light };
        let fixed = RULES.iter().map(|(class, property, light, night)| {
            format!("--{class}-{property}:{};", pick(*light, *night))
        });
        let numbered = COLOUR_PAIRS
            .iter()
            .enumerate()
            .map(|(number, (light, night))| format!("--c{number}:{};", pick(*light, *night)));
        let scheme = pick("light", "dark");
        fixed.chain(numbered).collect::<String>() + &format!("color-scheme:{scheme}")
    };
    let (light, dark) = (colours(false), colours(true));
    format!(
        ":root{{{light}}}\n@media(prefers-color-scheme:dark){{:root{{{dark}}}}}\n\
         :root[data-theme=light]{{{light}}}\n:root[data-theme=dark]{{{dark}}}\n"
    )
}

/// A length in pixels, to a tenth.
#[derive(Clone, Copy)]
pub(crate) struct Px(pub(crate) f64);

impl Display for Px {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Adding zero turns a negative zero into the positive one.
        let tenths = (self.0 * 10.0).round() + 0.0;
        write!(f, "{}", tenths / 10.0)
    }
}

/// Text made safe for XML: special characters are escaped, and those that XML cannot hold are
/// replaced.
pub(crate) struct XmlText<'a>(pub(crate) &'a str);

impl Display for XmlText<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for c in self.0.chars() {
            match c {
                '&' => f.write_str("&amp;")?,
                '<' => f.write_str("&lt;")?,
                '>' => f.write_str("&gt;")?,
                '"' => f.write_str("&quot;")?,
                '\n' | '\t' => f.write_char(' ')?,
                c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => {
                    f.write_char('\u{fffd}')?;
                }
                c => f.write_char(c)?,
            }
        }
        Ok(())
    }
}

struct Tip<'a>(&'a str);

impl Display for Tip<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, "<title>{}</title>", XmlText(self.0)) }
    }
}

/// An upper bound of the width of a text in any usual font. The viewer's font is not known.
pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    let width = |c: char| match c {
        'i' | 'j' | 'l' | 't' | 'f' | '.' | ',' | ':' | ';' | ' ' | '(' | ')' | '[' | ']' => 0.36,
        'm' | 'w' | 'M' | 'W' => 0.9,
        c if c.is_uppercase() => 0.72,
        _ => 0.6,
    };
    text.chars().map(width).sum::<f64>() * size
}

/// The smallest of 1, 2, 5, 10, ... (or their tenths) that is not below `least`.
pub(crate) fn nice_step(least: f64) -> f64 {
    let mut power = 1.0;
    while power < least {
        power *= 10.0;
    }
    while power / 10.0 >= least && power > 1e-9 {
        power /= 10.0;
    }
    let nice = [power / 5.0, power / 2.0];
    nice.into_iter().find(|step| *step >= least).unwrap_or(power)
}

/// A number as text for an axis: `1,200`, `0.25`, `3e7`.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && !(1e-4..1e7).contains(&value.abs()) {
        return format!("{value:.0e}");
    }
    let rounded = (value * 1e4).round() / 1e4 + 0.0;
    let sign = if rounded < 0.0 { "-" } else { "" };
    let whole = grouped(rounded.abs().trunc() as u64);
    // The digits after the point, with the point.
    let text = rounded.to_string();
    let rest = text.find('.').map_or("", |point| &text[point..]);
    format!("{sign}{whole}{rest}")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The contrast of two colours, from 1 to 21, as WCAG defines it.
    fn contrast(one: &str, other: &str) -> f64 {
        let light = |colour: &str| {
            let part = |at: usize| {
                let value = u8::from_str_radix(&colour[at..at + 2], 16).unwrap();
                let value = f64::from(value) / 255.0;
                if value <= 0.039_28 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
            };
            0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5) + 0.05
        };
        let (one, other) = (light(one), light(other));
        one.max(other) / one.min(other)
    }

    #[test]
    fn no_text_is_smaller_than_twelve_pixels() {
        let style = style();
        let sizes: Vec<f64> = style
            .split("font-size:")
            .skip(1)
            .filter_map(|rest| rest.split("px").next()?.parse().ok())
            .collect();
        assert!(sizes.len() >= 2 && sizes.iter().all(|size| *size >= 12.0), "{sizes:?}");
    }

    #[test]
    fn everything_that_is_drawn_can_be_told_from_the_page() {
        let rule = |class, property| {
            let found = RULES.iter().find(|rule| (rule.0, rule.1) == (class, property)).unwrap();
            (found.2, found.3)
        };
        let page = rule("page", "fill");
        let lines = ["lane", "mark", "waiting", "bad"].map(|class| rule(class, "stroke"));
        for (light, dark) in COLOUR_PAIRS.into_iter().chain(lines) {
            assert!(contrast(light, page.0) >= 3.0, "{light}: {}", contrast(light, page.0));
            assert!(contrast(dark, page.1) >= 3.0, "{dark}: {}", contrast(dark, page.1));
        }
        for (light, dark) in ["text", "soft", "alarm"].map(|class| rule(class, "fill")) {
            assert!(contrast(light, page.0) >= 4.5, "{light}: {}", contrast(light, page.0));
            assert!(contrast(dark, page.1) >= 4.5, "{dark}: {}", contrast(dark, page.1));
        }
    }

    #[test]
    fn numbers_are_readable() {
        let shown: Vec<_> =
            [0.0, -0.0, 1200.0, -1_234_567.5, 0.25, 3e7, 1e-6, 999.0].map(number).into();
        assert_eq!(shown, ["0", "0", "1,200", "-1,234,567.5", "0.25", "3e7", "1e-6", "999"]);
    }

    #[test]
    fn steps_are_nice() {
        let steps = [0.003, 0.2, 0.21, 1.0, 1.1, 3.0, 7.0, 10.0, 120.0].map(nice_step);
        let nice = [0.005, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0, 200.0];
        assert!(steps.iter().zip(nice).all(|(a, b)| (a - b).abs() < 1e-9), "{steps:?}");
    }

    #[test]
    fn text_is_escaped() {
        assert_eq!(
            XmlText("<a b=\"&\">\u{1}").to_string(),
            "&lt;a b=&quot;&amp;&quot;&gt;\u{fffd}"
        );
    }
}
