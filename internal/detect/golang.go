package detect

func golang(p *project, f *Found) {
	file, what := p.first("go.work", "go.mod"), "Go"
	switch file {
	case "":
		return
	case "go.work":
		what = "Go, with a workspace of modules"
	}
	f.find(p, file, what, "preset go")
	f.preset("go", "for go mod download")
	f.cache(file, "go", "go-build")
	f.program("go")
	f.image("golang:1")
	f.Builds, f.Tmp = true, "2G" // a test program of each package is linked there
	test := "go test ./..."
	if file == "go.work" && !p.has("go.mod") {
		test = ""
	}
	f.runs(p, "", test)
}
