package detect

// imports names the files that `init --from` reads: they describe a container, so a
// person says that they are meant.
func imports(p *project, f *Found) {
	for _, x := range []struct {
		what  string
		files []string
	}{
		{"a development container", []string{".devcontainer/devcontainer.json", ".devcontainer.json"}},
		{"MCP servers", []string{".mcp.json"}},
		{"a Compose project", []string{"compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml"}},
	} {
		if file := p.first(x.files...); file != "" {
			f.find(p, file, x.what, "not read; `workshop init --from "+file+"` imports it")
		}
	}
	if p.has("Dockerfile") {
		f.find(p, "Dockerfile", "an image", "")
		f.suggest("image", "build: {context: .}", "in place of `image`, the Dockerfile")
	}
	if p.has(".env") {
		f.find(p, ".env", "variables", "workers can read it, and all else of the project")
	}
}
