package app

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"

	"go.yaml.in/yaml/v3"

	"github.com/llmdo/workshop/internal/lib/atomicfile"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// errByHand is a file whose text is not as a line of ours could be put into it.
var errByHand = errors.New("its form is not edited")

// writeSetting sets one key of the user's config.yaml, to a value that needs no quotes, and
// returns the file. Every other line stays.
func (env *Env) writeSetting(key, value string) (file string, err error) {
	if file = env.userSettings(); file == "" {
		return "", Fail(CodeRefused, "there is no directory of settings: neither HOME nor XDG_CONFIG_HOME is set").Hint("set it: `export HOME=~`")
	}
	if real, err := filepath.EvalSymlinks(file); err == nil {
		file = real // kept elsewhere, as by a manager of dotfiles
	}
	mode := fs.FileMode(0o600)
	data, err := boundedfile.Read(file, maxSettings)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	case err == nil:
		if info, statErr := os.Stat(file); statErr == nil {
			mode = info.Mode().Perm()
		}
	}
	if err == nil {
		data, err = withSetting(data, key, value)
	}
	if err == nil {
		err = atomicfile.Write(file, data, mode)
	}
	if err != nil {
		return "", Fail(CodeFailed, "settings: %s: %w", file, err).Hint("write `%s: %s` into it", key, value)
	}
	return file, nil
}

// withSetting is a file of settings with one more line, or another one.
func withSetting(data []byte, key, value string) ([]byte, error) {
	var was, is map[string]any
	if err := yaml.Unmarshal(data, &was); err != nil {
		return nil, err
	}
	line := key + ": " + value
	present := regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + `[ \t]*:.*$`)
	out := data
	if present.Match(data) {
		out = present.ReplaceAllLiteral(data, []byte(line))
	} else {
		if n := len(data); n > 0 && data[n-1] != '\n' {
			out = append(out, '\n')
		}
		out = append(out, line+"\n"...)
	}
	if err := yaml.Unmarshal(out, &is); err != nil || is[key] != value {
		return nil, errByHand
	}
	delete(was, key)
	delete(is, key)
	if len(was) != len(is) || len(is) > 0 && !reflect.DeepEqual(was, is) {
		return nil, errByHand
	}
	return out, nil
}
