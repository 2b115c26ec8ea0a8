package compose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/llmdo/workshop/workshop"
)

// FuzzCompile: whatever a file that loads says, B1 to B12 hold before and
// after the facts, and the rendered file means the compiled project.
func FuzzCompile(f *testing.F) {
	for _, pattern := range []string{"testdata/*/workshop.yaml", "../examples/*/workshop.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(string(data))
		}
	}
	f.Add("workshop: {name: x, container: {image: 'a:b', env: {A: \"\\x01\\u2028 # : - ? ! & * |\", B: '${HOME}$$'}}, workers: [one]}")
	f.Add("workshop: {name: x, container: {image: y, mounts: ['./a b\\'c:/x', {source: './-', target: '/- #'}]}, workers: [one]}")
	f.Fuzz(func(t *testing.T, text string) { compileText(t, text) })
}

// FuzzEnvironment puts any name and value where a file has a scalar.
func FuzzEnvironment(f *testing.F) {
	for _, s := range []string{"", "yes", "0x1F", "1:20", "null", "~", "- a", "a: b", "a #b", "${X}", "$$", "\"", "\\", "'", "\n", "é\u0085\u2029\ufeff", "\xff", "2001-01-01", "=", "<<", "&a", "*a", "!t", "%", "@", "`"} {
		f.Add("NAME", s)
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		w := sample(t, 1)
		if strings.ContainsAny(name, "=\x00") || name == "" || strings.ContainsRune(value, 0) || !validText(name) || !validText(value) {
			return // no environment has it, the loader refuses it
		}
		w.Workers[0].Container.Env = map[string]workshop.Value[string]{name: val(value)}
		c := compiled(t, w)
		sameProject(t, c.Project, load(t, composeYAML(t, c), nil))
	})
}

// validText reports whether YAML can carry a text (YAML 1.2, 5.1).
func validText(s string) bool { return strings.ToValidUTF8(s, "") == s }

// compileText reports whether the text is a workshop that compiles.
func compileText(t *testing.T, text string) bool {
	t.Helper()
	files := fstest.MapFS{"workshop.yaml": {Data: []byte(text)}}
	for _, name := range []string{"one", "two", "code-reviewer", "security-scanner", "preview", "committer", "narrow", "alone", "offline", "open-one", "open-two"} {
		files["workers/"+name+".md"] = &fstest.MapFile{Data: []byte("---\nname: " + name + "\ndescription: d\nallowed-tools: Read\n---\nx\n")}
	}
	env := map[string]string{"SCANNER_TOOLS": "x"}
	for k, v := range goldenEnv {
		env[k] = v
	}
	w, list := workshop.Load(t.Context(), files, "workshop.yaml", workshop.Options{
		Home: "/home/user", Lookup: func(n string) (string, bool) { v, ok := env[n]; return v, ok },
	})
	if list.HasErrors() {
		return false
	}
	c, err := Compile(w)
	if err != nil {
		return false
	}
	for _, v := range Check(c) {
		t.Errorf("%v\n%s", v, text)
	}
	sameProject(t, c.Project, load(t, composeYAML(t, c), env))
	full, problems := WithFacts(c, factsFor(w))
	if len(problems) > 0 {
		return true
	}
	for _, v := range Check(full) {
		t.Errorf("with facts: %v\n%s", v, text)
	}
	if _, err := RenderFacts(full); err != nil {
		t.Error(err)
	}
	return true
}
