package detect

func rust(p *project, f *Found) {
	if !p.has("Cargo.toml") {
		return
	}
	what := "Rust"
	if hasLine(p.read("Cargo.toml"), "[workspace]") {
		what = "Rust, with a workspace"
	}
	f.find(p, "Cargo.toml", what, "preset cargo")
	f.preset("cargo", "for cargo fetch")
	f.cache("Cargo.toml", "cargo")
	f.program("cargo", "rustc")
	f.image("rust:1")
	f.Builds = true
	f.runs(p, "", "cargo test")
}
