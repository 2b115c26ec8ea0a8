package workshop

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strconv"

	"github.com/compose-spec/compose-go/v2/dotenv"

	"github.com/llmdo/workshop/internal/diag"
)

// environment returns the lookup of all variables: the caller's environment,
// then the files of --env-file (the last one first), then `.env` beside the
// file.
func environment(fsys fs.FS, dir string, o Options, p *problems) func(string) (string, bool) {
	lookup := o.Lookup
	if lookup == nil {
		lookup = func(string) (string, bool) { return "", false }
	}
	values := map[string]string{}
	names := append([]string{path.Join(dir, ".env")}, o.EnvFiles...)
	for i, name := range names {
		// `.env` comes with the repository: a link in it must not bring in
		// values from elsewhere (B45). --env-file is the caller's own word.
		if to, out := (&locator{fsys: fsys, dir: dir}).follow(name); i == 0 && out {
			p.add(diag.Diagnostic{Severity: diag.Error, Code: "env-outside", Range: diag.Range{Filename: name},
				Summary: "the file of variables is outside of the project: it leads to " + to,
				Hint:    "name it on the command line: --env-file " + to})
			continue
		}
		data, err := readLimited(fsys, name, maxEnvFileSize)
		switch {
		case i == 0 && errors.Is(err, fs.ErrNotExist):
			continue
		case err != nil:
			p.add(unreadable(name, err))
			continue
		}
		read, err := dotenv.ParseWithLookup(bytes.NewReader(data), func(name string) (string, bool) {
			if v, ok := lookup(name); ok {
				return v, true
			}
			v, ok := values[name]
			return v, ok
		})
		if err != nil {
			p.add(badEnvFile(name, data, err))
			continue
		}
		for k, v := range read {
			values[k] = v
		}
	}
	return func(name string) (string, bool) {
		if v, ok := lookup(name); ok {
			return v, true
		}
		v, ok := values[name]
		return v, ok
	}
}

// codeBadEnvFile marks diagnostics that must have no snippet.
const codeBadEnvFile = "bad-env-file"

var envLine = lazily(`^line (\d+):`)

// badEnvFile tells the line but not the text of the error: that may hold the
// value of a secret.
func badEnvFile(name string, data []byte, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Code: codeBadEnvFile, Summary: "not a file of NAME=value lines",
		Hint:  "quote values with blanks or special characters: NAME='value'",
		Range: diag.Range{Filename: name},
	}
	if m := envLine().FindStringSubmatch(err.Error()); m != nil {
		src := newSource(name, data)
		line, _ := strconv.Atoi(m[1])
		at := src.offset(line, 1)
		d.Range = src.span(at, at)
	}
	return d
}

// readLimited reads a file of at most max bytes.
func readLimited(fsys fs.FS, name string, max int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err == nil && !info.Mode().IsRegular() {
		if info.IsDir() {
			return nil, errors.New("it is a directory")
		}
		return nil, errors.New("it is not a regular file")
	}
	data, err := io.ReadAll(io.LimitReader(f, int64(max)+1))
	if err == nil && len(data) > max {
		return nil, sizeError(max)
	}
	return data, err
}

// sizeError is a file beyond its limit of that many bytes.
type sizeError int

func (e sizeError) Error() string { return fmt.Sprintf("the file has more than %d bytes", int(e)) }

func tooLargeErr(err error) bool {
	var e sizeError
	return errors.As(err, &e)
}

// unreadable tells that a file can't be read.
func unreadable(name string, err error) diag.Diagnostic {
	d := diag.Diagnostic{
		Severity: diag.Error, Code: "unreadable", Range: diag.Range{Filename: name},
		Summary: "can't read the file: " + reason(err),
	}
	if errors.Is(err, fs.ErrNotExist) {
		d.Summary = "there is no such file"
	}
	return d
}

// reason returns an error without the path that fs.PathError repeats.
func reason(err error) string {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err.Error()
	}
	return err.Error()
}
