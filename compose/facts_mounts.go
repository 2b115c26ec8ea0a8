package compose

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/lib/clip"
	"github.com/llmdo/workshop/internal/lib/shellquote"
	"github.com/llmdo/workshop/internal/lib/subpath"
	"github.com/llmdo/workshop/workshop"
)

// mount resolves a mount on this machine and checks it.
func (m *machine) mount(s *types.ServiceConfig, a *addition, all *workshop.Container, k *workshop.Mount, user string) {
	written, at := k.Source.V, k.At.Range
	if !m.f.Local && !k.IsCopy() {
		m.list.add("engine-elsewhere", at, fmt.Sprintf("the engine does not see this machine's files, so %s can't be mounted", written),
			"A mount of a running directory needs an engine on this machine.", "add `copy: true` to mount a read-only copy")
		return
	}
	sf := m.f.Sources[written]
	if k.ReadWrite && m.f.MappedIDs != "" {
		m.list.add("ids-mapped", at, fmt.Sprintf("what the worker writes to %s would not belong to %s, as %s (B4)", written, user, m.f.MappedIDs),
			idsDetail, idsHint)
		return
	}
	if !sf.Exists {
		if k.ReadWrite && slices.Contains(m.f.ToCreate, written) {
			if !m.unspeakable(k, m.f.absolute(written)) && !m.refused(k, m.f.absolute(written), "") {
				m.resolve(s, k, m.f.absolute(written))
			}
			return
		}
		hint := k.CreateHint(m.f.absolute(written))
		if k.ReadWrite {
			hint += " (a missing rw directory is made for you only inside the project)"
		}
		m.list.add("mount-source-missing", at, fmt.Sprintf("%s does not exist", written), "Looked for "+m.f.absolute(written)+".", hint)
		return
	}
	if m.unspeakable(k, sf.Real) || m.refused(k, sf.Real, sf.Alias) {
		return
	}
	if !k.OutsideProject && !subpath.Within(sf.Real, m.f.ProjectDir) {
		accepted := *k
		accepted.OutsideProject = true
		m.list.add("mount-outside-project", at, fmt.Sprintf("%s is outside the project directory (B7)", written),
			resolvedTo(m.f.absolute(written), sf.Real), "write "+accepted.Entry())
		return
	}
	for _, granted := range k.Within {
		if base := m.f.Sources[granted]; !base.Exists || !subpath.Within(sf.Real, base.Real) {
			m.list.add("mount-leads-out", at, fmt.Sprintf("%s is outside of %s, which the workshop mounts (B40)", written, granted),
				resolvedTo(m.f.absolute(written), sf.Real), "mount what the workshop mounts, or add a mount of "+sf.Real+" to the workshop's container")
			return
		}
	}
	if !m.point(all, k) || k.IsCopy() {
		return // what can't be copied is left out by the copy
	}
	m.content(k, sf)
	if k.ReadWrite {
		m.writable(k, k.Source.V, sf, user)
		if dir := m.f.protectedOn(sf.Real); dir != "" && !(dir == ".git" && k.GitWritable) {
			hint := "mount it read-only"
			if dir == ".git" {
				hint += ", or write `git: rw` in its entry"
			}
			what := "is in " + dir
			switch {
			case sf.GitHooks:
				what = "is in the hooks of a git directory"
			case sf.Git:
				what = "is a git directory"
			}
			m.list.add("mount-protected", at, fmt.Sprintf("%s %s, which makes programs of the host run others later; it can't be writable (B8)", written, what), "", hint)
		}
	}
	m.resolve(s, k, sf.Real)
	if k.ReadWrite {
		a.volumes = append(a.volumes, protectedMounts(k, sf.Real, m.f.Protected[written], m.f.sourcesBelow(sf.Real), coveredBy(all, k))...)
	}
}

// idsDetail and idsHint are about engines with ids of their own.
const (
	idsDetail = "Ids in its containers aren't those of this machine."
	idsHint   = "start it on namespaces: `workshop --engine namespace up`"
)

// point checks the mount point of a mount inside of another one: it is in the
// other's source. An engine would follow a link there to another place of the
// container, such as that of workshop-init, and would make a missing directory on
// this machine, as root.
func (m *machine) point(all *workshop.Container, k *workshop.Mount) bool {
	outer := workshop.Around(all.Mounts)(k)
	if outer == nil {
		return true
	}
	sf := m.f.Sources[outer.Source.V]
	if !sf.Exists && !slices.Contains(m.f.ToCreate, outer.Source.V) {
		return true // it is reported itself
	}
	rel := strings.TrimPrefix(k.Target.V, outer.Target.V+"/")
	p := m.f.Points[path.Join(sf.Real, rel)]
	switch {
	case p.Link != "":
		m.list.add("mount-target-link", k.At.Range, fmt.Sprintf("the target %s leads through %s, which is a symbolic link (B7, B12)", k.Target.V, p.Link),
			"The mount would be at another path of the worker.", "remove the link, or choose a target outside of "+outer.Target.V)
		return false
	case !p.Exists:
		m.list.add("mount-point-missing", k.At.Range, fmt.Sprintf("the target %s is inside %s, and %s has no %s", k.Target.V, outer.Target.V, outer.Source.V, rel),
			"Nothing is created in a mount source.", "make it: mkdir -p "+shellquote.Quote(path.Join(m.f.absolute(outer.Source.V), rel))+"; or choose a target outside of "+outer.Target.V)
		return false
	}
	return true
}

// refused reports a source that no worker gets.
func (m *machine) refused(k *workshop.Mount, real, alias string) bool {
	reason := cmp.Or(m.f.Refusal(real), alias)
	if reason == "" {
		return false
	}
	m.list.add("mount-source-refused", k.At.Range, fmt.Sprintf("%s can't be mounted: it %s (B7)", k.Source.V, reason),
		resolvedTo(m.f.absolute(k.Source.V), real), "mount the directory that the worker needs instead")
	return true
}

// unspeakable reports a source whose path isn't UTF-8. Engines are told paths in
// JSON, which has no other text: they would be told of another directory, one that
// nobody looked at.
func (m *machine) unspeakable(k *workshop.Mount, real string) bool {
	if utf8.ValidString(real) {
		return false
	}
	m.list.add("mount-source-not-utf8", k.At.Range, fmt.Sprintf("%s can't be mounted: its path, %q, is not UTF-8 (B7)", strconv.QuoteToGraphic(k.Source.V), real),
		"An engine would be told another path.", "rename the directory that has such a name, or mount another one")
	return true
}

// content checks what was found at and below a source (B7).
func (m *machine) content(k *workshop.Mount, sf SourceFacts) {
	if len(sf.MountPoints) > 0 {
		m.list.add("mount-point-below", k.At.Range,
			fmt.Sprintf("a file system is mounted below %s: %s (B7)", k.Source.V, clip.Some(sf.MountPoints)),
			"Mounts take one file system; what is mounted below it would be empty in the worker.",
			"mount "+sf.MountPoints[0]+" by an entry of its own, or unmount it")
	}
	if len(sf.Specials) > 0 && !k.AllowSockets {
		accepted := *k
		accepted.AllowSockets = true
		m.list.add("mount-special-files", k.At.Range,
			fmt.Sprintf("%s has sockets, FIFOs or devices: %s (B7)", k.Source.V, clip.Some(sf.Specials)),
			"A worker could talk through them to programs outside.",
			"remove them, or write "+accepted.Entry())
	}
}

// writable checks that the worker's user may write to an rw source (B4). Where
// an access control list decides, only the gate can tell.
func (m *machine) writable(k *workshop.Mount, what string, sf SourceFacts, user string) {
	uid, gid, ok := ids(user)
	if !ok || sf.ACL {
		return
	}
	bits := sf.Mode & 7
	switch {
	case uid == sf.UID:
		bits = sf.Mode >> 6 & 7
	case gid == sf.GID:
		bits = sf.Mode >> 3 & 7
	}
	need := uint32(2)
	if sf.Dir {
		need = 3
	}
	if bits&need == need {
		return
	}
	where := shellquote.Quote(sf.Real)
	m.list.add("mount-not-writable", k.At.Range,
		fmt.Sprintf("the worker's user %s can't write to %s: it belongs to %d:%d with mode %04o (B4)", user, what, sf.UID, sf.GID, sf.Mode),
		"The user is "+m.userReason(user)+".",
		fmt.Sprintf("chown -R %s %s   (or, for everybody: chmod -R o+rwX %s)", user, where, where))
}

func (m *machine) userReason(user string) string {
	if user == userOf("", m.f) && m.f.UserReason != "" {
		return m.f.UserReason
	}
	return "the one that workshop.yaml gives"
}

// resolve writes the real source into the worker's bind.
func (m *machine) resolve(s *types.ServiceConfig, k *workshop.Mount, source string) {
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if v.Type == types.VolumeTypeBind && v.Target == k.Target.V {
			v.Source = source
		}
	}
}

func resolvedTo(written, real string) string {
	if written == real {
		return ""
	}
	return written + " is " + real + "."
}
