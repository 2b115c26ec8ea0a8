package lock

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/source"
)

// Source is what came from another repository, as it was locked.
type Source struct {
	source.Locked
	Via []string // the files that name it: the workshop's, and IDs; sorted
}

// text is the source as the file has it, a line for each key.
func (s Source) text() string {
	var b strings.Builder
	line := func(key, value string) { b.WriteString("\n    " + key + ": " + value) }
	if s.Original != "" {
		line("original", scalar(s.Original))
	}
	line("ref", scalar(s.Ref))
	line("commit", scalar(s.Commit))
	line("tree", scalar(s.Tree))
	if s.Signed != nil {
		line("signed", "{by: "+inFlow(s.Signed.By)+", key: "+quoted(s.Signed.Key)+"}")
	}
	via := make([]string, len(s.Via))
	for i, name := range s.Via {
		via[i] = inFlow(name)
	}
	line("via", "["+strings.Join(via, ", ")+"]")
	return b.String()
}

// compareSources compares field by field.
func compareSources(locked, now map[string]Source) (out []Difference) {
	all := maps.Clone(locked)
	maps.Copy(all, now)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		l, isLocked := locked[name]
		n, isUsed := now[name]
		if !isLocked || !isUsed {
			out = append(out, Difference{Kind: SourceK, Name: name, Locked: l.Commit, Now: n.Commit})
			continue
		}
		before, after := l.fields(), n.fields()
		for i, f := range after {
			if before[i].text != f.text {
				out = append(out, Difference{Kind: SourceK, Name: name, Field: f.name, Locked: before[i].text, Now: f.text})
			}
		}
	}
	return out
}

type field struct{ name, text string }

// fields are the parts of a source in words.
func (s Source) fields() []field {
	signer := ""
	if s.Signed != nil {
		signer = s.Signed.String()
	}
	return []field{
		{"version", s.Original}, {"ref", s.Ref}, {"commit", s.Commit}, {"tree", s.Tree},
		{"signer", signer}, {"named by", strings.Join(s.Via, ", ")},
	}
}

// forms of what a source has.
var (
	refForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(refs/(heads|tags)/[!-~]{1,255}|sha256:[0-9a-f]{64})$`)
	})
	commitForm = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^([0-9a-f]{40}([0-9a-f]{24})?|sha256:[0-9a-f]{64})$`)
	})
	treeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^h1:[0-9A-Za-z+/]{43}=$`) })
	keyForm  = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^SHA256:[0-9A-Za-z+/]{43}$`) })
)

func (p *parser) source(n *yaml.Node) (out Source) {
	seen := p.mapping(n, func(key string, n *yaml.Node) {
		switch key {
		case "original":
			out.Original = p.form(n, nil, "a version: want ^1.4, v1.4.2 or a commit")
			if _, err := source.ParseVersion(out.Original); err != nil {
				p.fail(n, "%s", err)
			}
		case "ref":
			out.Ref = p.form(n, refForm(), "a branch or tag: want refs/tags/NAME")
		case "commit":
			out.Commit = p.form(n, commitForm(), "a commit: want its whole name")
		case "tree":
			out.Tree = p.form(n, treeForm(), "the hash of a tree: want h1: and a hash")
		case "signed":
			out.Signed = p.signer(n)
		case "via":
			out.Via = p.texts(n)
		default:
			p.fail(n, "a source of the lock has an unknown key %q", clip.Bytes(key, 40))
		}
	})
	for _, key := range []string{"ref", "commit", "tree", "via"} {
		if !seen[key] {
			p.fail(n, "the source has no %s", key)
		}
	}
	return out
}

func (p *parser) signer(n *yaml.Node) *source.Signer {
	var out source.Signer
	seen := p.mapping(n, func(key string, n *yaml.Node) {
		switch key {
		case "by":
			out.By = p.form(n, nil, "a name")
		case "key":
			out.Key = p.form(n, keyForm(), "the fingerprint of a key: want SHA256: and a hash")
		default:
			p.fail(n, "a signer of the lock has an unknown key %q", clip.Bytes(key, 40))
		}
	})
	if !seen["by"] || !seen["key"] {
		p.fail(n, "the signer has no name, or no key")
	}
	return &out
}

// form returns a text of a form, or any that isn't empty.
func (p *parser) form(n *yaml.Node, form *regexp.Regexp, what string) string {
	if n.Kind != yaml.ScalarNode || n.Value == "" || form != nil && !form.MatchString(n.Value) {
		p.fail(n, "%q is not %s", clip.Bytes(n.Value, 80), what)
		return ""
	}
	return n.Value
}

// texts returns the texts of a list that has some.
func (p *parser) texts(n *yaml.Node) (out []string) {
	if n.Kind != yaml.SequenceNode || len(n.Content) == 0 {
		p.fail(n, "this part of the lock is not a list of names")
		return nil
	}
	for _, item := range n.Content {
		out = append(out, p.form(item, nil, "a name"))
	}
	return out
}
