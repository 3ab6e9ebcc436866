//! The quorum of every node, drawn on the arrangement from which it is made.

use doorway_core::NodeId;
use doorway_core::quorums::{Kind, Plan, Quorums};

use crate::canvas::{Canvas, Point, Px, text_width};

/// The most nodes of a picture; each of them has a panel.
const MOST: u32 = 64;

/// The distance of neighbouring nodes in a panel, and the radius of a node.
const STEP: f64 = 20.0;
const RADIUS: f64 = 7.5;

/// Space around the picture and between panels.
const MARGIN: f64 = 24.0;
const GAP: f64 = 22.0;

/// The picture of these quorums as SVG: a panel for each node, in which its quorum is filled.
pub fn quorums(plan: &Plan, quorums: &Quorums) -> Result<String, String> {
    let size = quorums.size();
    if size > MOST {
        return Err(format!("a picture shows at most {MOST} quorums, not {size}"));
    }
    let places = places(plan, size);
    let (width, height) = extent(&places);
    let title = heading(plan, quorums);
    let per_row = panels_per_row(size, width, text_width(&title, 16.0));
    let mut canvas = Canvas::default();
    canvas.text("text title", (MARGIN, MARGIN + 10.0), &title);
    let key = "filled: the quorum of the node with the ring";
    canvas.text("soft", (MARGIN, MARGIN + 30.0), key);
    let mut top = MARGIN + 50.0;
    for turn in 0..quorums.turns() {
        if quorums.turns() > 1 {
            canvas.text("text", (MARGIN, top + 12.0), &format!("turn {}", turn + 1));
            top += 24.0;
        }
        for owner in (0..size).map(NodeId) {
            let (row, column) = (owner.0 / per_row, owner.0 % per_row);
            let left = MARGIN + f64::from(column) * (width + GAP);
            let corner = (left, top + f64::from(row) * (height + GAP));
            panel(&mut canvas, plan, &places, corner, owner, quorums.quorum(owner, turn));
        }
        top += f64::from(size.div_ceil(per_row)) * (height + GAP);
    }
    let columns = f64::from(per_row.min(size));
    let right = MARGIN + columns * (width + GAP) - GAP;
    let right = right.max(MARGIN + text_width(&title, 16.0)).max(MARGIN + text_width(key, 12.0));
    let description = "For each node, the nodes of its quorum on the arrangement of all nodes.";
    Ok(canvas.finish((right + MARGIN, top - GAP + MARGIN), &title, description))
}

fn heading(plan: &Plan, quorums: &Quorums) -> String {
    let properties = quorums.properties();
    let range = |least: u32, most: u32| {
        if least == most { least.to_string() } else { format!("{least} to {most}") }
    };
    let plan = match plan {
        Plan::Sets(_) => "hand-made".to_owned(),
        plan => plan.to_string(),
    };
    format!(
        "{plan} quorums, N = {}: K = {}, each node in {} quorums",
        quorums.size(),
        range(properties.size_min, properties.size_max),
        range(properties.load_min, properties.load_max)
    )
}

/// As many panels in a row as make the picture about as wide as high, but no fewer than the
/// heading has room for.
fn panels_per_row(size: u32, width: f64, heading: f64) -> u32 {
    let square = (f64::from(size) * 1.4).sqrt().ceil() as u32;
    let wide = (heading / (width + GAP)).floor() as u32;
    square.max(wide).clamp(1, size.max(1))
}

/// Where each node is, in steps from the corner of a panel.
fn places(plan: &Plan, size: u32) -> Vec<Point> {
    let place: Box<dyn Fn(u32) -> Point> = match plan {
        Plan::Kind(Kind::ProjectivePlane) if size == 7 => Box::new(|node| FANO[node as usize]),
        Plan::Kind(Kind::ProjectivePlane | Kind::DegeneratePlane) => {
            let order = (1..=size).find(|order| order * (order + 1) + 1 >= size).unwrap_or(1);
            Box::new(move |node| on_plane(node, order))
        }
        Plan::Kind(Kind::Grid) => {
            let columns = (1..=size).find(|columns| columns * columns >= size).unwrap_or(1);
            Box::new(move |node| (f64::from(node % columns), f64::from(node / columns)))
        }
        Plan::Kind(Kind::Triangle) | Plan::Triangle(_) => Box::new(on_triangle),
        Plan::Kind(Kind::Cyclic | Kind::Majority | Kind::Weighted) | Plan::Sets(_) => {
            Box::new(move |node| on_circle(node, size))
        }
    };
    (0..size).map(place).collect()
}

/// The plane of seven points as it is usually drawn: a triangle, the middles of its sides, and its
/// centre. With the numbers of Maekawa's Figure 1(b), lines 1 to 7 are the sides, the medians and
/// the circle.
const FANO: [Point; 7] =
    [(2.0, 0.0), (1.0, 1.73), (0.0, 3.46), (3.0, 1.73), (4.0, 3.46), (2.0, 3.46), (2.0, 2.31)];

/// The points at which parallel lines meet stand in a row above the others. Below stand the blocks
/// of the vertical lines, one beside the other.
fn on_plane(node: u32, order: u32) -> Point {
    match node.checked_sub(order + 1) {
        None => (f64::from(node), 0.0),
        Some(inner) => (f64::from(inner / order) + 1.0, f64::from(inner % order) + 1.4),
    }
}

fn on_triangle(node: u32) -> Point {
    let row = (0..=node).find(|row| (row + 1) * (row + 2) / 2 > node).unwrap_or(0);
    (f64::from(node - row * (row + 1) / 2), f64::from(row))
}

fn on_circle(node: u32, size: u32) -> Point {
    let radius = (f64::from(size) / std::f64::consts::TAU).max(0.6) * 1.1;
    let angle = std::f64::consts::TAU * f64::from(node) / f64::from(size);
    // The first node stands on top.
    (radius * (1.0 + angle.sin()), radius * (1.0 - angle.cos()))
}

/// Width and height of a panel.
fn extent(places: &[Point]) -> Point {
    let most = |of: fn(&Point) -> f64| places.iter().map(of).fold(0.0, f64::max);
    (most(|place| place.0) * STEP + 2.0 * RADIUS, most(|place| place.1) * STEP + 2.0 * RADIUS)
}

fn panel(
    canvas: &mut Canvas,
    plan: &Plan,
    places: &[Point],
    (left, top): Point,
    owner: NodeId,
    quorum: &[NodeId],
) {
    let at = |node: NodeId| {
        let (x, y) = places[node.index()];
        (left + RADIUS + x * STEP, top + RADIUS + y * STEP)
    };
    if *plan == Plan::Kind(Kind::ProjectivePlane) && places.len() == 7 {
        fano_line(canvas, quorum, &at);
    }
    for node in (0..places.len()).map(NodeId::at) {
        let member = quorum.binary_search(&node).is_ok();
        let place = at(node);
        canvas.circle(if member { "f0" } else { "knock lane" }, place, RADIUS);
        if node == owner {
            canvas.circle("mark", place, RADIUS + 2.5);
        }
        let text = if member { "mid knock" } else { "mid soft" };
        canvas.text(text, (place.0, place.1 + 3.8), &node.to_string());
    }
}

/// The line of a quorum on the plane of seven points: straight, or the circle.
fn fano_line(canvas: &mut Canvas, quorum: &[NodeId], at: &dyn Fn(NodeId) -> Point) {
    let [first, middle, last] = quorum else { return };
    let corners = [*first, *middle, *last].map(at);
    let distance = |one: Point, other: Point| (one.0 - other.0).hypot(one.1 - other.1);
    let pairs = [(0, 1), (1, 2), (0, 2)].map(|(i, j)| (corners[i], corners[j]));
    let lengths = pairs.map(|(one, other)| distance(one, other));
    let longest = lengths.iter().copied().fold(0.0, f64::max);
    // On a straight line, the way from end to end is as long as the other two together.
    let straight = (lengths.iter().sum::<f64>() - 2.0 * longest).abs() < 1.0;
    if straight {
        let ends = pairs.iter().zip(lengths).find(|(_, length)| *length >= longest);
        if let Some(((one, other), _)) = ends {
            canvas.line("curve c0", *one, *other);
        }
    } else {
        let mean = |of: fn(&Point) -> f64| corners.iter().map(of).sum::<f64>() / 3.0;
        let centre = (mean(|corner| corner.0), mean(|corner| corner.1));
        let radius = Px(distance(centre, corners[0]));
        let (x, y) = (Px(centre.0 - distance(centre, corners[0])), Px(centre.1));
        let (back, r) = (Px(-2.0 * radius.0), radius);
        let across = Px(2.0 * radius.0);
        let circle = format!("M{x} {y}a{r} {r} 0 1 0 {across} 0a{r} {r} 0 1 0 {back} 0");
        canvas.path("curve c0", &circle, "");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_stand_apart_in_every_arrangement() {
        let plans = Kind::ALL.map(Plan::Kind).into_iter().chain(["1,2;2".parse().unwrap()]);
        for plan in plans {
            for size in [1, 2, 3, 5, 7, 13, 21, 31, 50] {
                let places = places(&plan, size);
                assert_eq!(places.len(), size as usize);
                for (at, one) in places.iter().enumerate() {
                    assert!(one.0 >= -1e-9 && one.1 >= -1e-9, "{plan} {size}: {one:?}");
                    for other in &places[..at] {
                        let apart = (one.0 - other.0).hypot(one.1 - other.1);
                        assert!(apart > 0.9, "{plan} {size}: {one:?} and {other:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_quorum_has_a_panel() {
        let count = |plan: &str, size: u32| {
            let plan: Plan = plan.parse().unwrap();
            let picture = quorums(&plan, &plan.build(size, None).unwrap()).unwrap();
            picture.matches("class=\"mark\"").count()
        };
        assert_eq!(count("grid", 9), 9);
        assert_eq!(count("triangle", 6), 12, "both turns");
        assert_eq!(count("triangle:1", 6), 6);
        assert_eq!(count("1,2;2", 2), 2);
        let grid = Plan::Kind(Kind::Grid);
        let large = grid.build(65, None).unwrap();
        assert!(quorums(&grid, &large).unwrap_err().contains("at most 64"));
    }
}
