//! Bar charts as SVG, written by hand: a page in a repository needs no script.

use std::fmt::Write as _;

use crate::statistics::Spread;

pub struct Bar {
    pub label: &'static str,
    pub value: Spread,
    /// In the colour of what is compared with all others.
    pub is_highlighted: bool,
}

/// Bars on one scale, which begins at zero.
pub struct BarGroup {
    pub title: String,
    pub bars: Vec<Bar>,
}

const WIDTH: f64 = 760.0;
const MARGIN: f64 = 16.0;
const LABEL_WIDTH: f64 = 150.0;
/// Behind the longest bar, for its figure.
const FIGURE_WIDTH: f64 = 90.0;
const BAR_HEIGHT: f64 = 14.0;
const BAR_DISTANCE: f64 = 20.0;
const TITLE_HEIGHT: f64 = 26.0;

/// A chart of groups below one another. Each bar ends at its median; a line shows the spread.
pub fn bar_chart(title: &str, groups: &[BarGroup], format: impl Fn(f64) -> String) -> String {
    let bars: usize = groups.iter().map(|group| group.bars.len()).sum();
    let height = 2.0 * MARGIN + TITLE_HEIGHT * (1.0 + groups.len() as f64) + BAR_DISTANCE * bars as f64;
    let mut svg = String::new();
    push(
        &mut svg,
        format_args!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" \
             height=\"{height}\" font-family=\"sans-serif\" font-size=\"12\" role=\"img\">"
        ),
    );
    push(&mut svg, format_args!("<title>{}</title>", escape(title)));
    push(&mut svg, format_args!("<rect width=\"{WIDTH}\" height=\"{height}\" fill=\"#ffffff\"/>"));
    let mut top = MARGIN + 14.0;
    push(
        &mut svg,
        format_args!(
            "<text x=\"{MARGIN}\" y=\"{top}\" font-size=\"14\" font-weight=\"bold\">{}</text>",
            escape(title)
        ),
    );
    for group in groups {
        top += TITLE_HEIGHT;
        push(
            &mut svg,
            format_args!("<text x=\"{MARGIN}\" y=\"{top}\" fill=\"#444444\">{}</text>", escape(&group.title)),
        );
        let largest = group.bars.iter().map(|bar| bar.value.max).fold(0.0, f64::max);
        for bar in &group.bars {
            push_bar(&mut svg, bar, top + 6.0, largest, &format);
            top += BAR_DISTANCE;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn push_bar(svg: &mut String, bar: &Bar, top: f64, largest: f64, format: impl Fn(f64) -> String) {
    let start = MARGIN + LABEL_WIDTH;
    let width = WIDTH - MARGIN - FIGURE_WIDTH - start;
    let scale = |value: f64| if largest > 0.0 { value / largest * width } else { 0.0 };
    let (length, low, high) =
        (scale(bar.value.median), start + scale(bar.value.min), start + scale(bar.value.max));
    let (baseline, middle) = (top + BAR_HEIGHT - 3.0, top + BAR_HEIGHT / 2.0);
    let colour = if bar.is_highlighted { "#1f5fa8" } else { "#9aa7b5" };
    let label_end = start - 8.0;
    push(
        svg,
        format_args!(
            "<text x=\"{label_end}\" y=\"{baseline}\" text-anchor=\"end\">{}</text>",
            escape(bar.label)
        ),
    );
    push(
        svg,
        format_args!(
            "<rect x=\"{start}\" y=\"{top}\" width=\"{length:.1}\" height=\"{BAR_HEIGHT}\" fill=\"{colour}\"/>"
        ),
    );
    push(
        svg,
        format_args!(
            "<path d=\"M{low:.1} {middle}H{high:.1}M{low:.1} {0}v6M{high:.1} {0}v6\" stroke=\"#222222\" fill=\"none\"/>",
            middle - 3.0
        ),
    );
    let figure_start = (start + length).max(high) + 6.0;
    push(
        svg,
        format_args!(
            "<text x=\"{figure_start:.1}\" y=\"{baseline}\">{}</text>",
            escape(&format(bar.value.median))
        ),
    );
}

fn push(svg: &mut String, element: std::fmt::Arguments<'_>) {
    writeln!(svg, "{element}").expect("memory can be written");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chart(values: &[(f64, f64, f64)]) -> String {
        let bars = values.iter().map(|(min, median, max)| Bar {
            label: "a & b",
            value: Spread { median: *median, min: *min, max: *max },
            is_highlighted: false,
        });
        let groups = [BarGroup { title: "16 in flight".to_owned(), bars: bars.collect() }];
        bar_chart("operations < per second", &groups, |value| format!("{value:.0}"))
    }

    #[test]
    fn bars_are_in_proportion_to_the_longest_spread() {
        let svg = chart(&[(90.0, 100.0, 200.0), (10.0, 50.0, 60.0)]);
        let width = WIDTH - 2.0 * MARGIN - LABEL_WIDTH - FIGURE_WIDTH;
        assert!(svg.contains(&format!("width=\"{:.1}\"", width / 2.0)), "{svg}");
        assert!(svg.contains(&format!("width=\"{:.1}\"", width / 4.0)), "{svg}");
        assert!(svg.contains(&format!("H{:.1}", MARGIN + LABEL_WIDTH + width)), "the spread line, {svg}");
    }

    #[test]
    fn texts_are_escaped_and_every_element_is_closed() {
        let svg = chart(&[(1.0, 1.0, 1.0)]);
        assert!(svg.contains("a &amp; b") && svg.contains("operations &lt; per second"), "{svg}");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        assert_eq!(svg.matches("<text ").count(), svg.matches("</text>").count());
    }

    #[test]
    fn bars_without_length_are_drawn() {
        let svg = chart(&[(0.0, 0.0, 0.0)]);
        assert!(svg.contains("width=\"0.0\"") && !svg.contains("NaN"), "{svg}");
    }
}
