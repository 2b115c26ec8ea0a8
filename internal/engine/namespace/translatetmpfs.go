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
			m.UID, m.GID = t.out.Process.UID, t.out.Process.GID // the worker's, in any mapping
		}
		t.add(m)
	}
	return nil
}

// parseTmpfs parses Compose's short form "TARGET:OPTION,…" with the supported options
// of tmpfs(5). Any other option is an error, and so is a missing size.
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
			return bad("duplicate option %s", key)
		}
		seen[key] = true
		ok := !given
		switch key {
		case "rw", "nosuid", "nodev", "noexec": // true of every mount, and the default
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
			return bad("the namespace engine does not support the option %q", option)
		}
		if !ok {
			return bad("the option %q is not valid", option)
		}
	}
	switch {
	case m.Size == 0:
		return bad("it has no size (B3)")
	case seen["exec"] && seen["noexec"]:
		return bad("both exec and noexec are set")
	}
	return m, nil
}

// parseSize parses a number of bytes with an optional suffix k, m or g, as the
// kernel does (memparse).
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
