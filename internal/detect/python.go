package detect

import "strings"

func python(p *project, f *Found) {
	file := p.first("pyproject.toml", "setup.py", "setup.cfg", "requirements.txt", "Pipfile")
	if file == "" {
		return
	}
	text := p.read("pyproject.toml")
	tool, setup := "pip", "python3 -m venv .venv && .venv/bin/pip install -e ."
	run := ".venv/bin/"
	switch {
	case p.has("uv.lock") || hasLine(text, "[tool.uv]"):
		tool, setup, run = "uv", "uv sync", "uv run "
	case p.has("poetry.lock") || hasLine(text, "[tool.poetry]"):
		tool, setup, run = "poetry", "poetry install", "poetry run "
	case p.has("pdm.lock"):
		tool, setup, run = "pdm", "pdm install", "pdm run "
	case file == "requirements.txt":
		setup = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
	case file == "Pipfile":
		tool, setup, run = "pipenv", "pipenv install --dev", "pipenv run "
	}
	f.find(p, file, "Python with "+tool, "preset pypi")
	f.preset("pypi", "for "+tool)
	switch tool {
	case "uv", "poetry":
		f.cache(file, tool)
	default:
		f.cache(file, "pip")
	}
	f.program("python3")
	f.image("python:3")
	if tool != "pip" {
		f.program(tool)
	}
	f.env("PIP_DISABLE_PIP_VERSION_CHECK", "1", "")
	f.runs(p, setup, run+pythonTests(p, text))
}

// pythonTests is the command that runs the tests: pytest where something names it.
func pythonTests(p *project, pyproject string) string {
	for _, text := range []string{pyproject, p.read("setup.cfg"), p.read("tox.ini"), p.read("requirements.txt"), p.read("requirements-dev.txt")} {
		if strings.Contains(text, "pytest") {
			return "pytest"
		}
	}
	if p.first("pytest.ini", "conftest.py", "tests/conftest.py") != "" {
		return "pytest"
	}
	return "python -m unittest"
}
