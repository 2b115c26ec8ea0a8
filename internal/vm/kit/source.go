package kit

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/llmdo/workshop/internal/lib/boundedfile"
	"github.com/llmdo/workshop/internal/vm/report"
)

// Source is where a kernel and its modules are.
type Source struct {
	Release string
	tree    fs.FS
	image   string // path of its vmlinuz
	modules string // path of lib/modules/RELEASE
}

// moduleDirs are where distributions have modules; the first is most often a link to the
// second.
var moduleDirs = []string{"usr/lib/modules", "lib/modules"}

// ErrSeveral is the error of a tree with more than one kernel.
var ErrSeveral = errors.New("several kernels")

// Find looks for a kernel in a tree: the root of a machine, or an unpacked package of its
// distribution. Without a release there must be one alone; else the error is [ErrSeveral] and lists them.
func Find(tree fs.FS, release string) (Source, error) {
	all := map[string]Source{}
	for _, dir := range moduleDirs {
		entries, err := fs.ReadDir(tree, dir)
		if err != nil {
			continue
		}
		for _, e := range entries {
			name := e.Name()
			s := Source{Release: name, tree: tree, modules: dir + "/" + name}
			for _, image := range []string{"boot/vmlinuz-" + name, s.modules + "/vmlinuz"} {
				if _, err := fs.Stat(tree, image); err == nil && s.image == "" {
					s.image = image
				}
			}
			if _, err := fs.Stat(tree, s.modules+"/kernel"); err == nil && s.image != "" && all[name].image == "" {
				all[name] = s
			}
		}
	}
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	switch {
	case len(all) == 0:
		return Source{}, errors.New("no kernel with modules: no boot/vmlinuz-RELEASE beside lib/modules/RELEASE/kernel")
	case release == "" && len(all) > 1:
		return Source{}, fmt.Errorf("%w: %s", ErrSeveral, strings.Join(names, ", "))
	case release == "":
		release = names[0]
	}
	s, ok := all[release]
	if !ok {
		return Source{}, fmt.Errorf("no kernel %s, only %s", release, strings.Join(names, ", "))
	}
	return s, nil
}

// pkg is the name of Debian's package of the kernel, if the tree is one.
func (s Source) pkg() string {
	name := "linux-image-" + s.Release
	if _, err := fs.Stat(s.tree, "usr/share/doc/"+name); err != nil {
		return ""
	}
	return name
}

// kernel reads the kernel.
func (s Source) kernel() (file []byte, k report.Kernel, err error) {
	image, err := boundedfile.ReadFS(s.tree, s.image, maxImage)
	if err != nil {
		return nil, k, err
	}
	if file, err = vmlinux(image); err == nil {
		k, err = describe(file)
	}
	if err == nil && k.Release != s.Release {
		err = fmt.Errorf("kernel %s, want %s", k.Release, s.Release)
	}
	if err != nil {
		return nil, k, fmt.Errorf("%s: %w", s.image, err)
	}
	k.Package = s.pkg()
	return file, k, nil
}

// moduleTree is lib/modules/RELEASE.
func (s Source) moduleTree() (fs.FS, error) { return fs.Sub(s.tree, s.modules) }
