package initbuild

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strings"
	"time"
)

const (
	module  = "github.com/llmdo/workshop"
	program = module + "/cmd/workshop-init"
)

// source is what this program was built of: a version of the module, or a checkout.
type source struct {
	Version, Sum string // of the module; empty: a checkout
	Dir          string // of the checkout
	// Linked is when this program was written: its source is older.
	Linked time.Time
	Go     string // the toolchain's version
}

// String names the source for a person.
func (s source) String() string {
	if s.Sum != "" {
		return module + "@" + s.Version
	}
	return s.Dir
}

// self is the source of this process. Its program may be of another module, which
// links packages of this one.
func self() (source, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return source{}, errors.New("this program has no build information")
	}
	_, file, _, _ := runtime.Caller(0)
	s, err := sourceOf(info, file)
	if err != nil || s.Sum != "" {
		return s, err
	}
	name, err := os.Executable()
	if err != nil {
		return source{}, err
	}
	if runtime.GOOS == "linux" {
		name = "/proc/self/exe" // even if another one has that name by now
	}
	st, err := os.Stat(name)
	if err != nil {
		return source{}, err
	}
	s.Linked = st.ModTime()
	return s, nil
}

// sourceOf reads build information; file is the path of this file as the compiler saw
// it, which -trimpath shortens.
func sourceOf(info *debug.BuildInfo, file string) (source, error) {
	s := source{Go: info.GoVersion}
	for _, m := range append([]*debug.Module{&info.Main}, info.Deps...) {
		if m.Path != module {
			continue
		}
		if m.Replace == nil && m.Sum != "" {
			s.Version, s.Sum = m.Version, m.Sum
			return s, nil
		}
		dir, found := strings.CutSuffix(filepath.ToSlash(file), "/internal/initimage/initbuild/source.go")
		if !found || !filepath.IsAbs(filepath.FromSlash(dir)) {
			return source{}, errors.New("this program doesn't say where its source is, as it was built with -trimpath: run `make build` there, and use bin/workshop")
		}
		s.Dir = filepath.FromSlash(dir)
		return s, nil
	}
	return source{}, errors.New("this program was not built from the module " + module)
}
