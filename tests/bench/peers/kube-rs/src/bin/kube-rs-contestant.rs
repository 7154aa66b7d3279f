//! kube-rs with the allocator of the system, as its users get it.

fn main() -> Result<(), Box<dyn std::error::Error>> {
    kube_rs_contest::run()
}
