//! The README shows what the documentation compiles and runs.

#[test]
fn the_readme_shows_the_compiled_example() {
    let source = include_str!("../src/lib.rs");
    let (_, docs) = source.split_once("//! # Test your controller\n").expect("a section");
    let lines: Vec<&str> = docs.lines().map(uncommented).collect();
    let begin = lines.iter().position(|l| *l == "```").expect("a block") + 1;
    let length = lines[begin..].iter().position(|l| *l == "```").expect("its end");
    let example = lines[begin..begin + length].join("\n");
    assert!(example.contains("sim.check("));
    assert!(include_str!("../../../README.md").contains(&format!("```rust\n{example}\n```\n")), "{example}");
}

fn uncommented(line: &str) -> &str {
    let line = line.strip_prefix("//!").unwrap_or(line);
    line.strip_prefix(' ').unwrap_or(line)
}
