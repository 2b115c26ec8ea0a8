package namespace

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"github.com/llmdo/workshop/internal/engine/namespace/container/spec"
)

func (t *translation) tmpfs() error {
	for _, line := range t.s.Tmpfs {
		m, err := parseTmpfs(line)
		if err != nil {
			return err
		}
		if t.role != spec.Worker && t.m.rootless {
			m.UID, m.GID = t.out.Process.UID, t.out.Process.GID // its own, whoever that is here
		}
		t.add(m)
	}
	return nil
}

// parseTmpfs reads Compose's short form "TARGET:OPTION,…" with the options of
// tmpfs(5) that are carried out. Any other is an error; so is one without a size.
func parseTmpfs(line string) (spec.Mount, error) {
	target, options, _ := strings.Cut(line, ":")
	m := spec.Mount{Type: spec.Tmpfs, Target: path.Clean(target), Mode: 0o1777, NoExec: true}
	bad := func(format string, args ...any) (spec.Mount, error) {
		return spec.Mount{}, fmt.Errorf("tmpfs %s: %s", target, fmt.Sprintf(format, args...))
	}
	if !path.IsAbs(target) {
		return bad("the target is not absolute")
	}
	seen := map[string]bool{}
	for option := range strings.SplitSeq(options, ",") {
		if options == "" {
			break
		}
		key, value, given := strings.Cut(option, "=")
		if seen[key] {
			return bad("the option %s stands there twice", key)
		}
		seen[key] = true
		ok := !given
		switch key {
		case "rw", "nosuid", "nodev", "noexec": // as every mount is, and the default
		case "exec":
			m.NoExec = false
		case "size":
			m.Size, ok = parseSize(value)
		case "mode":
			n, err := strconv.ParseUint(value, 8, 32)
			m.Mode, ok = uint32(n), err == nil && n&^0o1777 == 0
		case "uid":
			m.UID, ok = id(value)
		case "gid":
			m.GID, ok = id(value)
		default:
			return bad("the option %q is not carried out by the namespace engine", option)
		}
		if !ok {
			return bad("the option %q is not understood", option)
		}
	}
	switch {
	case m.Size == 0:
		return bad("it has no size (B3)")
	case seen["exec"] && seen["noexec"]:
		return bad("it is exec and noexec")
	}
	return m, nil
}

// parseSize reads a number of bytes, with k, m or g behind it as the kernel
// does (memparse).
func parseSize(s string) (int64, bool) {
	shift := 0
	if s != "" {
		switch s[len(s)-1] {
		case 'k', 'K':
			shift = 10
		case 'm', 'M':
			shift = 20
		case 'g', 'G':
			shift = 30
		}
		if shift > 0 {
			s = s[:len(s)-1]
		}
	}
	n, err := strconv.ParseUint(s, 10, 62)
	if err != nil || n == 0 || n > (1<<62)>>shift {
		return 0, false
	}
	return int64(n) << shift, true
}
