package workshop

import (
	"bytes"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// environment returns the lookup of all variables: the caller's environment,
// then the files of --env-file (the last one first), then `.env` next to the
// file.
func environment(fsys fs.FS, dir string, o Options, p *problems) *variables {
	caller := func(name string) (setting, bool) {
		if o.Lookup == nil {
			return setting{}, false
		}
		v, ok := o.Lookup(name)
		return setting{v, OfUser}, ok
	}
	v := &variables{used: map[string]Variable{}, asks: map[string]foreignReference{}}
	values := map[string]setting{}
	v.lookup = func(name string) (setting, bool) {
		if v, ok := caller(name); ok {
			return v, true
		}
		v, ok := values[name]
		return v, ok
	}
	if o.Symbols {
		return v
	}
	name := path.Join(dir, ".env")
	// `.env` comes with the repository: a link in it must not bring in values
	// from elsewhere (B45). --env-file is the caller's own word.
	if to, out := (&locator{fsys: fsys, dir: dir}).follow(name); out {
		p.add(diag.Diagnostic{Severity: diag.Error, Code: "env-outside", Range: diag.Range{Filename: name},
			Summary: "the file of variables is outside of the project: it leads to " + to,
			Hint:    "name it on the command line: --env-file " + to})
	} else if data, err := boundedfile.ReadFS(fsys, name, maxEnvFileSize); err == nil {
		for k, text := range v.projectsOwn(name, data, p) {
			values[k] = setting{text, OfFile}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		p.add(unreadable(name, err))
	}
	for _, name := range o.EnvFiles {
		data, err := boundedfile.ReadFS(fsys, name, maxEnvFileSize)
		if err != nil {
			p.add(unreadable(name, err))
			continue
		}
		origin := OfUser
		read, err := parseEnv(data, func(name string) (string, bool) {
			x, ok := v.lookup(name)
			if ok && x.origin == OfFile {
				origin = OfFile // which of the file's values it enters isn't known
			}
			return x.text, ok
		})
		if err != nil {
			p.add(badEnvFile(name, data, err))
			continue
		}
		for k, text := range read {
			values[k] = setting{text, origin}
			delete(v.asks, k)
		}
	}
	return v
}

// foreignReference is a line of `.env` that asks for a variable which the file
// doesn't set.
type foreignReference struct {
	variable string
	src      *source // of `.env`
}

// missing encloses the name of a variable that `.env` doesn't set, in the
// place of its value; no text of a file has it.
const missing = "\x00"

// projectsOwn reads `.env`, which comes with the repository: it sees no
// environment (B45), so that what enters a worker is what workshop.yaml shows.
// Values that ask for more are recorded in asks, and are errors where
// workshop.yaml uses them.
func (v *variables) projectsOwn(name string, data []byte, p *problems) map[string]string {
	own, err := parseEnv(data, func(string) (string, bool) { return "", true })
	var values map[string]string
	if err == nil {
		values, err = parseEnv(data, func(name string) (string, bool) {
			_, set := own[name]
			return missing + name + missing, !set
		})
	}
	if err != nil {
		p.add(badEnvFile(name, data, err))
		return nil
	}
	src := newSource(name, data)
	for k, text := range values {
		if _, rest, found := strings.Cut(text, missing); found {
			variable, _, _ := strings.Cut(rest, missing)
			v.asks[k] = foreignReference{variable, src}
			values[k] = ""
		}
	}
	return values
}

// referenceIn finds the first ${variable} or $variable of a file.
func referenceIn(src *source, variable string) diag.Range {
	for at := 0; ; {
		i := bytes.IndexByte(src.data[at:], '$')
		if i < 0 {
			return src.whole()
		}
		at += i + 1
		rest, ok := bytes.CutPrefix(bytes.TrimPrefix(src.data[at:], []byte("{")), []byte(variable))
		if ok && (len(rest) == 0 || !nameByte(rest[0], true)) {
			return src.span(at-1, at-1)
		}
	}
}

// Codes of diagnostics about files of variables: these are never quoted, as a
// line may hold the value of a secret.
const (
	codeBadEnvFile = "bad-env-file"
	codeEnvAsks    = "env-reads-environment"
)

// badEnvFile reports the line but not the text of the error: that may hold the
// value of a secret.
func badEnvFile(name string, data []byte, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Code: codeBadEnvFile, Summary: "not a file of NAME=value lines",
		Hint:  "quote values with blanks or special characters: NAME='value'",
		Range: diag.Range{Filename: name},
	}
	if bad, ok := errors.AsType[*envError](err); ok {
		src := newSource(name, data)
		at := src.offset(bad.line, 1)
		d.Range = src.span(at, at)
	}
	if errors.Is(err, errEnvValue) || errors.Is(err, errEnvWork) {
		d.Summary, d.Hint = errors.Unwrap(err).Error(), "put fewer variables into values"
	}
	return d
}

// unreadable reports a file that can't be read.
func unreadable(name string, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Code: "unreadable", Range: diag.Range{Filename: name},
		Summary: "can't read the file: " + boundedfile.Reason(err),
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.Summary = "there is no such file"
	}
	return d
}
