package docker

import (
	"path"
	"slices"
	"strings"

	"github.com/docker/docker/api/types/mount"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/docker/dialect"
)

// shownRow is a setting that a flavour doesn't show as Docker does.
type shownRow struct {
	field, reason string
	read          func(side) []string // in place of the row's; nil: it isn't shown
}

// shownBy are these settings by flavour, as the recordings of testdata/stored have them.
var shownBy = map[engine.Flavour][]shownRow{
	engine.FlavourPodman: {
		{"CapAdd", "relative to its default capabilities; compared with CapDrop", nil},
		{"CapDrop", "relative to its default capabilities", podmanCapabilities},
		{"Tmpfs", "with the propagation, without notmpcopyup", podmanTmpfs},
		{"MaskedPaths", "not shown", nil},
		{"ReadonlyPaths", "not shown", nil},
		{"LogConfig", "not shown by Docker's API", nil},
		{"CgroupParent", "a slice of systemd's, where that has the groups", func(s side) []string { return without(word(s.host.CgroupParent), podmanSlices) }},
		{"PidMode", "a namespace of its own is private", func(s side) []string { return podmanNamespace(string(s.host.PidMode)) }},
		{"UTSMode", "a namespace of its own is private", func(s side) []string { return podmanNamespace(string(s.host.UTSMode)) }},
		{"IpcMode", "a namespace of its own is shareable", func(s side) []string { return podmanNamespace(string(s.host.IpcMode)) }},
		{"UsernsMode", "keep-id is private; what the container reports of its ids is compared", func(s side) []string {
			if s.host.UsernsMode == dialect.KeepID {
				return word("private")
			}
			return word(string(s.host.UsernsMode))
		}},
		{"CgroupnsMode", "not shown by Docker's API", nil},
		{"Sysctls", "not shown", nil},
		{"Binds", "all mounts but tmpfs; compared as Mounts", nil},
		{"Mounts", "as Binds", podmanMounts},
		{"NetworkMode", "bridge, whatever the network; its name is in networks", podmanNetworkMode},
		{"Runtime", "oci, whatever it runs; the dialect refuses another than the default", nil},
		{"Env", "with variables of its own", podmanEnv},
		{"Image", "a name that it resolved; the planner compares the image's ID", nil},
	},
}

// rowsOf are the compared settings as a flavour shows them.
func rowsOf(f engine.Flavour) []storedRow {
	var out []storedRow
	for _, row := range storedRows {
		at := slices.IndexFunc(shownBy[f], func(s shownRow) bool { return s.field == row.field })
		if at >= 0 {
			row.read = shownBy[f][at].read
		}
		if row.read != nil {
			out = append(out, row)
		}
	}
	return out
}

// podmanSlices are where systemd has the containers of root and of a user for which no
// parent is named (podman: libpod/runtime_ctr.go, SystemdDefaultCgroupParent).
var podmanSlices = []string{"machine.slice", "user.slice"}

// podmanDefaults are the capabilities of a container for which none are named
// (containers/common: pkg/config/default.go of 4.3).
var podmanDefaults = []string{
	"CAP_AUDIT_WRITE", "CAP_CHOWN", "CAP_DAC_OVERRIDE", "CAP_FOWNER", "CAP_FSETID", "CAP_KILL", "CAP_MKNOD",
	"CAP_NET_BIND_SERVICE", "CAP_NET_RAW", "CAP_SETFCAP", "CAP_SETGID", "CAP_SETPCAP", "CAP_SETUID", "CAP_SYS_CHROOT",
}

// podmanCapabilities returns what a container has: drop, then add.
func podmanCapabilities(s side) []string {
	drop := capabilities(s.host.CapDrop)
	out := capabilities(s.host.CapAdd)
	if !slices.Contains(drop, "ALL") {
		out = append(out, without(podmanDefaults, drop)...)
	}
	return out
}

func podmanTmpfs(s side) []string {
	all := map[string]string{}
	for target, options := range s.host.Tmpfs {
		all[target] = strings.Join(without(strings.Split(options, ","), []string{"notmpcopyup", "rprivate"}), ",")
	}
	return tmpfs(all)
}

func podmanNamespace(mode string) []string {
	if mode == "private" || mode == "shareable" {
		return nil
	}
	return word(mode)
}

// podmanMounts reads the mounts that were asked for and the Binds that are shown:
// SOURCE:TARGET:OPTIONS, with rbind for a recursive one.
func podmanMounts(s side) (out []string) {
	line := func(source, target string, writable, recursive bool) {
		bind := strings.HasPrefix(source, "/")
		out = append(out, sentence([]string{source, "at", path.Clean(target), access(writable), ifSet("non-recursive", bind && !recursive)}))
	}
	for _, m := range s.host.Mounts {
		line(m.Source, m.Target, !m.ReadOnly, m.Type == mount.TypeBind && (m.BindOptions == nil || !m.BindOptions.NonRecursive))
	}
	for _, bind := range s.host.Binds {
		source, rest, _ := strings.Cut(bind, ":")
		target, options, _ := strings.Cut(rest, ":")
		list := strings.Split(options, ",")
		line(source, target, !slices.Contains(list, "ro"), !slices.Contains(list, "bind"))
	}
	return out
}

func podmanNetworkMode(s side) []string {
	mode := string(s.host.NetworkMode)
	if _, ok := s.networks[mode]; ok {
		mode = "bridge"
	}
	return word(mode)
}

// podmanVariables are those that podman adds, HOME at the first start (podman:
// libpod/container_internal_common.go, pkg/env/env.go).
var podmanVariables = []string{
	"container=podman", "TERM=xterm", "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "HOME=/root",
}

func podmanEnv(s side) []string {
	return slices.DeleteFunc(without(s.config.Env, podmanVariables), func(line string) bool { return strings.HasPrefix(line, "HOSTNAME=") })
}
