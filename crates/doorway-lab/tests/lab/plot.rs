//! Plots: the drawings of known data, and properties of every plot.

use doorway_lab::plot::{Plot, Series};

use crate::pictures::{classes, golden};

fn plot(curves: u32, x_log: bool, y_log: bool) -> Plot {
    let sizes = [2.0, 4.0, 8.0, 16.0, 32.0, 64.0];
    let series = (1..=curves).flat_map(|number| {
        let factor = f64::from(number) / f64::from(curves) * 3.0;
        let formula = |n: f64| factor * (n - 1.0).powf(1.0 / (1.0 + f64::from(number % 3)));
        let measured = |n: f64| formula(n) * (1.0 + 0.06 * (n * 1.7 + factor).sin());
        [
            Series {
                name: format!("algorithm-{number}"),
                points: sizes.iter().map(|n| (*n, measured(*n))).collect(),
                errors: sizes.iter().map(|n| measured(*n) * 0.04).collect(),
                dashed: false,
            },
            Series {
                name: format!("{number}(N-1)/{curves}"),
                points: sizes.iter().map(|n| (*n, formula(*n))).collect(),
                errors: Vec::new(),
                dashed: true,
            },
        ]
    });
    Plot {
        title: "Messages per entry".into(),
        x_label: "nodes".into(),
        y_label: "messages".into(),
        x_log,
        y_log,
        series: series.collect(),
    }
}

#[test]
fn plots_are_as_they_were() {
    golden("plot.svg", &plot(4, false, false).render());
    golden("plot-many.svg", &plot(25, true, true).render());
}

#[test]
fn a_plot_leaves_out_what_cannot_be_shown() {
    let points = vec![(0.0, 1.0), (1.0, f64::INFINITY), (2.0, 3.0), (3.0, f64::NAN), (4.0, -1.0)];
    let series = Series { name: "<a & b>".into(), points, ..Series::default() };
    for (x_log, y_log) in [(false, false), (true, false), (false, true), (true, true)] {
        let plot = Plot { x_log, y_log, series: vec![series.clone()], ..Plot::default() };
        let svg = plot.render();
        let markers = classes(&svg).iter().filter(|class| *class == "f0").count() - 1;
        let shown = if y_log { 2 } else { 3 } - usize::from(x_log);
        assert_eq!(markers, shown, "x {x_log} y {y_log}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "x {x_log} y {y_log}");
    }
    classes(&Plot::default().render());
}

#[test]
fn the_names_of_many_curves_do_not_overlap() {
    let svg = plot(25, false, false).render();
    let names = svg.lines().filter(|line| line.contains("<tspan"));
    let height = |line: &str| line.split("y=\"").nth(1)?.split('"').next()?.parse::<f64>().ok();
    let mut heights: Vec<_> = names.filter_map(height).collect();
    heights.sort_by(f64::total_cmp);
    assert_eq!(heights.len(), 25);
    assert!(heights.windows(2).all(|pair| pair[1] - pair[0] >= 15.0), "{heights:?}");
}
