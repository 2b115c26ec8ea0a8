package workshop

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/lib/subpath"
)

// mountUse is a mount and the workers that have it. Most workers have the
// workshop's list of mounts itself, so that there are few uses.
type mountUse struct {
	*Mount
	groups []networkGroup
}

// networkGroup is workers with one network, in rooms of their own or not.
type networkGroup struct {
	key     string
	network Network
	workers []string
}

// sharedMounts warns of mounts over which workers with different networks can
// lend each other what they reach: a unix socket belongs to the file system and
// not to a network namespace (unix(7)), and connecting to one works over a
// read-only bind too. There is one warning for a pair of sources. Read-only
// copies are apart. Links are taken by their names; with the root, a path that
// is written from it and one from / are compared too.
func sharedMounts(w *Workshop, root string, work *effort, p *problems) {
	var sources []string
	uses := map[string][]mountUse{}
	for _, list := range mountLists(w) {
		for i := range list.mounts {
			if m := &list.mounts[i]; !m.IsCopy() {
				at := path.Clean(m.Source.V)
				if root != "" && !path.IsAbs(at) {
					at = path.Join(root, path.Dir(w.File), at)
				}
				if uses[at] == nil {
					sources = append(sources, at)
				}
				uses[at] = append(uses[at], mountUse{m, list.groups})
			}
		}
	}
	for i, a := range sources {
		for _, b := range sources[i:] {
			if !work.spend(10) { // two paths are compared, byte by byte
				return
			}
			below, ok := subpath.Below(b, a)
			inner, outer := uses[b], uses[a]
			if !ok {
				below, ok = subpath.Below(a, b)
				inner, outer = uses[a], uses[b]
			}
			if ok {
				sharedSource(outer, inner, below, work, p)
			}
		}
	}
}

// mountList is one list of mounts, with the workers that have it.
type mountList struct {
	mounts []Mount
	groups []networkGroup
}

func mountLists(w *Workshop) []*mountList {
	var lists []*mountList
	known := map[*Mount]*mountList{} // lists that were inherited are the same
	type rules struct {
		mode        firewall.Mode
		allow, deny *firewall.Rule
	}
	keys := map[rules]string{}
	for i := range w.Workers {
		wk := w.Workers[i]
		mounts := wk.Container.Mounts
		if len(mounts) == 0 {
			continue
		}
		list := known[&mounts[0]]
		if list == nil {
			list = &mountList{mounts: mounts}
			known[&mounts[0]] = list
			lists = append(lists, list)
		}
		n := &wk.Container.Network
		n.OwnRoom.V = false // it reaches what others of the same lines reach
		at := rules{n.Mode.V, firstRule(n.Allow), firstRule(n.Deny)}
		if _, ok := keys[at]; !ok {
			keys[at] = policyKey(n)
		}
		list.add(keys[at], &wk)
	}
	return lists
}

func (l *mountList) add(key string, wk *Worker) {
	for i := range l.groups {
		if l.groups[i].key == key {
			l.groups[i].workers = append(l.groups[i].workers, wk.Name)
			return
		}
	}
	l.groups = append(l.groups, networkGroup{key, wk.Container.Network, []string{wk.Name}})
}

// sharedSource warns of the first workers that a pair of sources joins; inner
// is `below` outer.
func sharedSource(outer, inner []mountUse, below string, work *effort, p *problems) {
	for _, o := range outer {
		// What is read-only below a writable mount (B8) holds no socket of it.
		name := protectedIn(below)
		outerWrites := o.ReadWrite && (name == "" || name == ".git" && o.GitWritable)
		for _, i := range inner {
			if !outerWrites && !i.ReadWrite {
				continue
			}
			writes, looks := o, i
			if !outerWrites {
				writes, looks = i, o
			}
			for _, a := range writes.groups {
				var others []string
				lent := ""
				for _, b := range looks.groups {
					if !work.spend(1) {
						return
					}
					if a.key == b.key {
						continue
					}
					if text := joined(lends(a, b, work), lends(b, a, work)); text != "" {
						others = append(others, b.workers...)
						lent = cmp.Or(lent, text)
					}
				}
				if lent != "" {
					p.add(sharedMount(writes.Mount, looks.Mount, a.workers, others, lent))
					return
				}
			}
		}
	}
}

func sharedMount(writes, looks *Mount, writers, others []string, lent string) diag.Diagnostic {
	share := "shares"
	if len(writers) > 1 {
		share = "share"
	}
	d := diag.Diagnostic{Severity: diag.Warning, Code: "shared-mount", Range: writes.At.Range,
		Summary: fmt.Sprintf("%s: %s, which may write it, %s it with %s, on another network", writes.Source.V, someOf(writers), share, someOf(others)),
		Detail:  "A unix socket in it joins their networks, also over a read-only mount: " + lent + ".",
		Hint:    "give them separate directories, or the same network; a read-only copy (`copy: true`) joins nothing"}
	if looks.At.Range != writes.At.Range {
		d.Related = []diag.Related{{Message: "shared here", Range: looks.At.Range}}
	}
	return d
}

// lends says what a reaches and b doesn't, so that b could have it from a;
// empty if nothing.
func lends(a, b networkGroup, work *effort) string {
	from, to := a.network, b.network
	var what []string
	switch {
	case from.Mode.V == firewall.None:
		return ""
	case from.Mode.V == firewall.Open && to.Mode.V != firewall.Open:
		what = append(what, "every public address")
	}
	for _, r := range from.Allow {
		if from.Mode.V == firewall.Open && public(r) || !work.spend(1+len(to.Allow)) {
			continue
		}
		if to.Mode.V == firewall.None || !allowedBy(r, to) {
			what = append(what, r.Target()+" port "+portsText(r.Ports))
		}
	}
	if to.Mode.V != firewall.None {
		for _, d := range to.Deny {
			if work.spend(1+len(from.Allow)+len(from.Deny)) && !denyKept(d, from) {
				what = append(what, d.Target()+", which is denied to it")
			}
		}
	}
	if len(what) == 0 {
		return ""
	}
	return fmt.Sprintf("through %s, %s can reach %s", a.workers[0], b.workers[0], someOf(what))
}

func joined(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + "; " + b
}

// someOf names the first three.
func someOf(names []string) string {
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= 3:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s and %d more", strings.Join(names[:3], ", "), n-3)
	}
}
