package lock

import (
	"bytes"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"go.yaml.in/yaml/v4"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/yamltext"
	"github.com/llmdo/workshop/internal/source"
)

// Hint is the way out of a lock that can't be read: nothing is lost by it.
const Hint = "run `workshop lock`, and review what `git diff` shows"

// Parse reads a file; name is for the places of what is wrong with it. A lock with
// errors is nil: it is never taken for an empty one.
func Parse(name string, data []byte) (*Lock, diag.List) {
	p := &parser{name: name, lock: Empty()}
	switch {
	case len(data) > MaxSize:
		p.failAt(0, 0, fmt.Sprintf("the lock has %d bytes, more than %d", len(data), MaxSize))
	case p.conflict(data):
	default:
		p.document(data)
	}
	if len(p.problems) > 0 {
		return nil, p.problems
	}
	return p.lock, nil
}

type parser struct {
	name     string
	lock     *Lock
	problems diag.List
}

// maxDepth of nested lists and mappings; a lock has five levels.
const maxDepth = 8

// maxProblems are reported; a file of other content has thousands.
const maxProblems = 20

func (p *parser) failAt(line, column int, summary string) {
	if len(p.problems) >= maxProblems {
		return
	}
	at := diag.Pos{Line: line, Column: column}
	p.problems = append(p.problems, diag.Diagnostic{
		Severity: diag.Error, Code: "bad-lock", Summary: summary, Hint: Hint, Range: diag.Range{Filename: p.name, Start: at, End: at},
	})
}

func (p *parser) fail(n *yaml.Node, format string, args ...any) {
	p.failAt(n.Line, n.Column, fmt.Sprintf(format, args...))
}

// conflict reports the marks that a merge leaves (git-merge(1)).
func (p *parser) conflict(data []byte) bool {
	for i, line := range bytes.Split(data, []byte("\n")) {
		for _, mark := range []string{"<<<<<<<", "|||||||", "=======", ">>>>>>>"} {
			if bytes.HasPrefix(line, []byte(mark)) {
				p.failAt(i+1, 1, "the lock has conflict markers of a merge")
				return true
			}
		}
	}
	return false
}

func (p *parser) document(data []byte) {
	if bad, found := yamltext.Check(data, 0); found {
		line := 1 + bytes.Count(data[:bad.At], []byte("\n"))
		p.failAt(line, 1+bad.At-(bytes.LastIndexByte(data[:bad.At], '\n')+1), bad.Summary)
		return
	}
	lines := bytes.Split(bytes.TrimRight(data, "\r\n"), []byte("\n"))
	if last := bytes.TrimSuffix(lines[len(lines)-1], []byte("\r")); string(last) != end {
		p.failAt(len(lines), 1, "the lock is cut off: its last line isn't `"+end+"`")
		return
	}
	if at, found := yamltext.SecondDocument(data, 0); found {
		p.failAt(1+bytes.Count(data[:at], []byte("\n")), 1, "the lock has a second document")
		return
	}
	var doc yaml.Node
	if err := yamltext.Load(data, &doc, maxDepth); err != nil {
		p.failAt(lineOf(err), 1, "the lock is not valid YAML: "+clip.Bytes(strings.ReplaceAll(strings.TrimPrefix(err.Error(), "yaml: "), "\n", " "), 200))
		return
	}
	if len(doc.Content) != 1 || doc.Content[0].Kind != yaml.MappingNode {
		p.failAt(1, 1, "the lock is not a mapping")
		return
	}
	root := doc.Content[0]
	seen := p.mapping(root, func(key string, n *yaml.Node) {
		switch key {
		case "version":
			if n.Value != strconv.Itoa(Version) {
				p.fail(n, "the lock has version %s, this program knows %d", clip.Bytes(n.Value, 20), Version)
			}
		case "files":
			p.hashes(n, p.lock.Files)
		case "sources":
			p.mapping(n, func(id string, n *yaml.Node) {
				if !source.IsName(id) {
					p.fail(n, "%q is not the name of a source", clip.Bytes(id, 80))
				}
				p.lock.Sources[id] = p.source(n)
			})
		case "images":
			p.mapping(n, func(name string, n *yaml.Node) { p.lock.Images[name] = p.image(n) })
		case "builds":
			p.mapping(n, func(key string, n *yaml.Node) {
				if p.lock.Builds[key] = unpinned; n.Value != unpinned {
					p.lock.Builds[key] = p.hash(n)
				}
			})
		case "presets":
			p.hashes(n, p.lock.Presets)
		case "can":
			p.can(n)
		}
	})
	for _, key := range []string{"version", "files", "sources", "images", "builds", "presets", "can"} {
		if !seen[key] && (key == "version" || key == "files" || key == "can") {
			p.failAt(1, 1, fmt.Sprintf("the lock has no %s", key))
		}
		delete(seen, key)
	}
	for key := range seen {
		p.failAt(1, 1, fmt.Sprintf("the lock has an unknown key %q", clip.Bytes(key, 40)))
	}
}

var yamlLine = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`line (\d+)`) })

func lineOf(err error) int {
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		n, _ := strconv.Atoi(m[1])
		return n
	}
	return 0
}

// mapping calls each for the pairs of a mapping of text, and returns its keys.
func (p *parser) mapping(n *yaml.Node, each func(key string, n *yaml.Node)) map[string]bool {
	seen := map[string]bool{}
	if n.Kind != yaml.MappingNode {
		p.fail(n, "this part of the lock is not a mapping")
		return seen
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || value.Kind == yaml.AliasNode || key.Tag == "!!merge":
			p.fail(key, "this key of the lock is not text")
		case seen[key.Value]:
			p.fail(key, "the key %q is given twice in the lock", clip.Bytes(key.Value, 80))
		default:
			seen[key.Value] = true
			each(key.Value, value)
		}
	}
	return seen
}

var hashForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^sha256:[0-9a-f]{64}$`) })

func (p *parser) hash(n *yaml.Node) string {
	if n.Kind != yaml.ScalarNode || !hashForm().MatchString(n.Value) {
		p.fail(n, "%q is not a hash: want sha256: and 64 hexadecimal digits", clip.Bytes(n.Value, 80))
		return ""
	}
	return n.Value
}

func (p *parser) hashes(n *yaml.Node, into map[string]string) {
	p.mapping(n, func(key string, n *yaml.Node) { into[key] = p.hash(n) })
}

func (p *parser) image(n *yaml.Node) (out Image) {
	if n.Kind == yaml.ScalarNode {
		if n.Value != unpinned {
			out.Digest = p.hash(n)
		}
		return out
	}
	out.Platforms = map[string]string{}
	p.mapping(n, func(key string, n *yaml.Node) {
		if key == "digest" {
			out.Digest = p.hash(n)
		} else {
			out.Platforms[key] = p.hash(n)
		}
	})
	if out.Digest == "" {
		p.fail(n, "the image has no digest")
	}
	return out
}

func (p *parser) can(n *yaml.Node) {
	if n.Kind != yaml.SequenceNode {
		p.fail(n, "can is not a list")
		return
	}
	for _, line := range n.Content {
		if line.Kind != yaml.ScalarNode {
			p.fail(line, "this line of can is not text")
			continue
		}
		p.lock.Can = append(p.lock.Can, line.Value)
	}
}
