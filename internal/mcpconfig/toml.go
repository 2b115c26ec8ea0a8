package mcpconfig

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/llmdo/workshop/internal/lib/plainjson"
)

// tomlFile is a file of TOML.
type tomlFile struct {
	text []byte
	key  string
	all  map[string]any
	nl   string
}

func parseTOML(text []byte, key string) (file, error) {
	f := &tomlFile{text: text, key: key, nl: newline(text)}
	if err := toml.Unmarshal(text, &f.all); err != nil {
		reason := strings.TrimPrefix(err.Error(), "toml: ")
		if at, ok := errors.AsType[*toml.DecodeError](err); ok {
			line, column := at.Position()
			reason = fmt.Sprintf("line %d, column %d: %s", line, column, reason)
		}
		return nil, fmt.Errorf("is not valid TOML: %s", reason)
	}
	if list, there := f.all[key]; there {
		if _, ok := list.(map[string]any); !ok {
			return nil, fmt.Errorf("%s is not a table", key)
		}
	}
	return f, nil
}

func (f *tomlFile) content() map[string]any { return f.all }

func (f *tomlFile) servers() map[string]any {
	servers, _ := f.all[f.key].(map[string]any)
	return servers
}

func (f *tomlFile) value(s Server) any {
	args := make([]any, len(s.Args))
	for i, a := range s.Args {
		args[i] = a
	}
	v := map[string]any{"command": s.Command, "args": args}
	if len(s.Env) > 0 {
		env := map[string]any{}
		for name, value := range s.Env {
			env[name] = value
		}
		v["env"] = env
	}
	if s.Timeout > 0 {
		v[timeoutKey] = seconds(s.Timeout)
	}
	return v
}

// server is the table of a server.
func (f *tomlFile) server(name string, s Server) string {
	args := make([]string, len(s.Args))
	for i, a := range s.Args {
		args[i] = tomlText(a)
	}
	lines := []string{
		"[" + f.key + "." + tomlKey(name) + "]",
		"command = " + tomlText(s.Command),
		"args = [" + strings.Join(args, ", ") + "]",
	}
	if len(s.Env) > 0 {
		var env []string
		for _, key := range slices.Sorted(maps.Keys(s.Env)) {
			env = append(env, tomlKey(key)+" = "+tomlText(s.Env[key]))
		}
		lines = append(lines, "env = { "+strings.Join(env, ", ")+" }")
	}
	if s.Timeout > 0 {
		lines = append(lines, fmt.Sprintf("%s = %d", timeoutKey, seconds(s.Timeout)))
	}
	return strings.Join(lines, f.nl)
}

// timeoutKey has the seconds after which Codex ends a call; without it 60.
const timeoutKey = "tool_timeout_sec"

func seconds(d time.Duration) int64 { return int64((d + time.Second - 1) / time.Second) }

func tomlKey(name string) string {
	if name != "" && strings.Trim(name, bareKey) == "" {
		return name
	}
	return tomlText(name)
}

// bareKey has the characters of a key without quotes.
const bareKey = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// tomlText is a basic string: JSON's escapes are among TOML's, which also escapes DEL.
func tomlText(s string) string {
	text, err := plainjson.Marshal(s)
	if err != nil {
		panic(err) // of a text
	}
	return strings.ReplaceAll(string(text), "\x7f", `\u007f`)
}

// add puts the table at the end, where it changes no other. A last line without an end
// stays one.
func (f *tomlFile) add(name string, s Server) ([]splice, error) {
	end, text := len(f.text), f.server(name, s)
	switch {
	case len(bytes.TrimSpace(f.text)) == 0:
		text += f.nl
	case bytes.HasSuffix(f.text, []byte("\n")):
		text = f.nl + text + f.nl
	default:
		text = f.nl + f.nl + text
	}
	return []splice{{end, end, text}}, nil
}

func (f *tomlFile) replace(name string, s Server) ([]splice, error) {
	tables := f.tables(name)
	if len(tables) == 0 || tables[0].below {
		return nil, errNotEdited
	}
	first := tables[0]
	out := []splice{{first.from, first.last, f.server(name, s)}}
	for _, t := range tables[1:] {
		out = append(out, splice{t.from, t.to, ""})
	}
	return out, nil
}

func (f *tomlFile) remove(name string) ([]splice, error) {
	var out []splice
	for _, t := range f.tables(name) {
		if t.to == len(f.text) {
			t.from -= f.gap(t.from)
		}
		out = append(out, splice{t.from, t.to, ""})
	}
	if len(out) == 0 {
		return nil, errNotEdited
	}
	return out, nil
}

// gap is the length of what add put in front of the last table.
func (f *tomlFile) gap(from int) int {
	before := f.text[:from]
	switch blank := f.nl + f.nl; {
	case !bytes.HasSuffix(before, []byte(blank)):
		return 0
	case bytes.HasSuffix(f.text, []byte("\n")):
		return len(f.nl)
	default:
		return len(blank)
	}
}

// table is the text of a table: from its header to the end of its last line, with what
// ends that, and the blank lines behind. Comments in front of the next table stay there.
type table struct {
	from, last, to int
	below          bool // of a part of the server, such as its env
}

// tables are those of a server, as far as its text looks like one: the caller compares
// what comes of it.
func (f *tomlFile) tables(name string) (out []table) {
	own := regexp.MustCompile(`^[ \t]*\[[ \t]*` + keyPattern(f.key) + `[ \t]*\.[ \t]*` + keyPattern(name) + `[ \t]*(\.[^\]]*)?\][ \t]*(#.*)?\r?$`)
	var open *table
	at := 0
	for line := range bytes.Lines(f.text) {
		text := bytes.TrimSuffix(line, []byte("\n"))
		end := at + len(bytes.TrimSuffix(text, []byte("\r")))
		switch bare := bytes.TrimSpace(text); {
		case bytes.HasPrefix(bare, []byte("[")):
			open = nil
			if m := own.FindSubmatch(text); m != nil {
				out = append(out, table{from: at, last: end, to: at + len(line), below: len(m[1]) > 0})
				open = &out[len(out)-1]
			}
		case open == nil:
		case len(bare) > 0 && bare[0] != '#':
			open.last, open.to = end, at+len(line)
		case len(bare) == 0 && open.to == at: // blank lines behind its last one
			open.to = at + len(line)
		}
		at += len(line)
	}
	return out
}

// keyPattern matches a key, bare or in quotes.
func keyPattern(key string) string {
	quoted := regexp.QuoteMeta(key)
	return `(?:` + quoted + `|"` + quoted + `"|'` + quoted + `')`
}
