package toolbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/toolbox/wire"
)

// defaultPath is where programs are looked for without PATH; the engines' own.
const defaultPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// lookUp finds a program in PATH. A name with a slash is a path, relative to
// the directory that it runs in. Directories of PATH that are relative are left
// out: a file in the working directory must not become a program by chance.
func lookUp(name string, env []string) (string, error) {
	if strings.Contains(name, "/") {
		return name, nil
	}
	path := defaultPath
	for _, v := range env {
		if value, ok := strings.CutPrefix(v, "PATH="); ok {
			path = value
		}
	}
	denied := ""
	for _, dir := range filepath.SplitList(path) {
		if !filepath.IsAbs(dir) {
			continue
		}
		file := filepath.Join(dir, name)
		var st unix.Stat_t
		if unix.Stat(file, &st) != nil || st.Mode&unix.S_IFMT == unix.S_IFDIR {
			continue
		}
		if unix.Access(file, unix.X_OK) == nil {
			return file, nil
		}
		denied = file
	}
	if denied != "" {
		return "", &wire.Error{Code: wire.CodeNotExecutable, Message: fmt.Sprintf("%s is not executable: permission denied", denied)}
	}
	return "", &wire.Error{Code: wire.CodeNotFound, Message: fmt.Sprintf("%q: there is no such program in the worker (PATH=%s)", name, path)}
}

// withVariables adds variables; those of the same name are replaced.
func withVariables(env, more []string) []string {
	at := make(map[string]int, len(env))
	out := make([]string, 0, len(env)+len(more))
	for _, list := range [][]string{env, more} {
		for _, v := range list {
			name, _, _ := strings.Cut(v, "=")
			if i, ok := at[name]; ok {
				out[i] = v
				continue
			}
			at[name] = len(out)
			out = append(out, v)
		}
	}
	return out
}

// file is the path of a program from here. In the working directory, which is named
// by its descriptor, a ".." is the kernel's to follow.
func (p *program) file(path string) string {
	if filepath.IsAbs(path) || p.cwd == "" {
		return path
	}
	return p.cwd + "/" + path
}

// startError says why a program could not be started.
func startError(err error, p program, path string) error {
	code, message := wire.CodeToolFailed, errorText(err)
	info, statErr := os.Stat(p.file(path))
	switch {
	case errors.Is(err, unix.ENOENT) && statErr == nil:
		code, message = wire.CodeNotFound, "the program is there, but what it needs to run isn't: the interpreter of its first line, or its dynamic loader"
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ENOTDIR):
		code, message = wire.CodeNotFound, "there is no such program in the worker"
	case statErr == nil && info.IsDir():
		code, message = wire.CodeNotExecutable, "it is a directory"
	case errors.Is(err, unix.EACCES), errors.Is(err, unix.EPERM):
		code, message = wire.CodeNotExecutable, "it is not executable: permission denied"
	case errors.Is(err, unix.ENOEXEC):
		code, message = wire.CodeNotExecutable, "it is neither a program for this machine nor a script whose first line names its interpreter (#!)"
	case errors.Is(err, unix.ETXTBSY):
		code, message = wire.CodeNotExecutable, "it is being written by another process"
	case errors.Is(err, unix.E2BIG):
		code, message = wire.CodeInvalidParams, "its arguments and variables are longer than the kernel takes; give them as stdin or in a file"
	case errors.Is(err, unix.EAGAIN):
		message = "the worker's limit of processes is reached (resources.pids); end what runs in the background"
	case errors.Is(err, unix.ENOMEM):
		message = "the worker's memory is used up (resources.memory)"
	}
	return &wire.Error{Code: code, Message: fmt.Sprintf("%s: %s", clip.Text(p.argv[0], shown), message)}
}

// errorText leaves the path out of an error whose message names it already.
func errorText(err error) string {
	var no unix.Errno
	if errors.As(err, &no) {
		return no.Error()
	}
	return err.Error()
}
