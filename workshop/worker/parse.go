package worker

import (
	"bytes"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/yamltext"
)

// Parse reads a worker file. The path serves for messages, for the name of a
// file that gives none, and for the dialect where hint is empty. All problems
// are reported at once; the Definition is of use only when none of them is an
// error. Parse reads no other file: see Definition.ResultFile.
func Parse(path string, data []byte, hint Dialect) (Definition, diag.List) {
	return new(Schemas).Parse(path, data, hint)
}

// Parse is [Parse] for one worker of many.
func (s *Schemas) Parse(path string, data []byte, hint Dialect) (Definition, diag.List) {
	f := &file{text: newText(path, data), dialect: hint, schemas: s}
	if f.dialect == "" {
		f.dialect = DialectOf(path)
	}
	f.def = Definition{Dialect: f.dialect, Source: diag.Source{Range: diag.Range{Filename: path}}}
	read := f.reader()
	if read == nil {
		f.report(diag.Error, "worker-dialect", diag.Range{Filename: path}, "a worker file ends in .md, .worker or .agent, or is called SKILL.md", "%s is not a worker file", path)
		return f.def, f.told()
	}
	fm, bad := splitFrontMatter(f.text)
	if bad != nil {
		return f.def, diag.List{*bad}
	}
	switch {
	case fm.present:
		f.hasKeys = true
		f.readKeys(fm.start, fm.end)
		f.def.Instructions = instructions(data[fm.body:])
	case f.dialect == LLMDoWorker || f.dialect == LLMDoAgent:
		f.hasKeys = true
		f.readKeys(fm.body, len(data)) // the oldest form: keys alone
	default:
		f.def.Instructions = instructions(data[fm.body:])
	}
	if f.def.Instructions != "" {
		f.hiddenProse(fm.body)
	}
	if !f.diags.HasErrors() {
		read()
	}
	return f.def, f.told()
}

// hiddenProse warns of instructions that a model reads and a person doesn't see.
func (f *file) hiddenProse(from int) {
	if i := bytes.IndexFunc(f.data[from:], yamltext.Deceives); i >= 0 {
		r, n := utf8.DecodeRune(f.data[from+i:])
		f.report(diag.Warning, "worker-hidden-text", f.span(from+i, from+i+n), "remove it if it isn't meant: `LC_ALL=C cat -v "+shellquote.Path(f.path)+"` shows all of the file", "the character U+%04X turns or hides text: a model reads what isn't shown", r)
	}
}

func (f *file) reader() func() {
	switch f.dialect {
	case Markdown:
		return f.markdown
	case LLMDoWorker:
		return f.llmdoWorker
	case LLMDoAgent:
		return f.llmdoAgent
	case ClaudeAgent:
		return f.claudeAgent
	case AgentSkill:
		return f.agentSkill
	}
	return nil
}

// common reads the keys that every dialect has. required names those that the
// dialect's own programs insist on.
func (f *file) common(required ...string) {
	f.def.Name, f.def.Source.Range = f.str("name")
	if f.def.Name == "" {
		f.def.Name = nameOf(f.path, f.dialect)
		f.def.Source.Range = diag.Range{Filename: f.path}
	}
	f.def.Description, _ = f.str("description")
	f.def.Model, _ = f.str("model")
	for _, key := range required {
		if f.take(key) == nil {
			value := "…"
			if key == "name" {
				value = nameOf(f.path, f.dialect)
			}
			f.report(diag.Warning, "worker-missing-key", f.top(), "add `"+key+": "+value+"`", "the key %s is missing, which %s requires", key, f.dialect.title())
		}
	}
	if f.def.Instructions == "" && f.dialect != LLMDoWorker {
		f.report(diag.Warning, "worker-no-instructions", f.top(), "write below the second --- what the worker is to do", "the worker has no instructions")
	}
}

// top is the place of what is missing.
func (f *file) top() diag.Range { return f.span(len(f.bom()), len(f.bom())) }

// nameOf is the name of a worker whose file gives none: the file's, or the
// directory's for a skill.
func nameOf(file string, d Dialect) string {
	if d == AgentSkill {
		return path.Base(path.Dir(file))
	}
	return strings.TrimSuffix(path.Base(file), path.Ext(file))
}

func (d Dialect) title() string {
	switch d {
	case LLMDoWorker:
		return "an llm-do .worker file"
	case LLMDoAgent:
		return "an llm-do .agent file"
	case ClaudeAgent:
		return "a Claude sub-agent"
	case AgentSkill:
		return "an agent skill"
	case InlineWorker:
		return "an item of `workers:`"
	}
	return "a worker file"
}

// rest keeps and reports the keys that nobody has read. known gives the
// dialect's own keys with what to say of them; "" says nothing.
func (f *file) rest(known map[string]string, ours ...string) {
	for _, fd := range f.fields {
		if fd.used {
			continue
		}
		f.keep(fd)
		at := f.rangeOf(fd.key)
		if note, ok := known[fd.name]; ok {
			if note != "" {
				f.report(diag.Warning, "worker-unused-key", at, "keep it for other programs, or remove it", "%s has no effect in a workshop: %s", fd.name, note)
			}
			continue
		}
		switch fd.name {
		case "container", "image", "network", "mounts", "env", "secrets", "ports", "resources", "sandbox", "isolation", "user", "workdir":
			f.report(diag.Warning, "worker-unused-key", at,
				"write it in workshop.yaml, in this worker's entry: `- {name: "+f.def.Name+", container: {…}}`",
				"%s has no effect here: a worker file says what a worker does, workshop.yaml says where", fd.name)
			continue
		}
		hint := "known keys: " + strings.Join(ours, ", ")
		if near := f.near(fd.name, ours); near != "" {
			hint = "did you mean " + near + "? " + hint
		}
		f.report(diag.Warning, "worker-unknown-key", at, hint, "unknown key %q, it is kept without effect", shorten(fd.name))
	}
}
