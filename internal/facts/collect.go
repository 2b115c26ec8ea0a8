package facts

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"unicode/utf8"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// Options has the subject of the collection, and the engine's properties.
type Options struct {
	Workshop *workshop.Workshop
	Compiled *compose.Compiled // of the workshop, before facts
	Project  string            // name on the engine; empty: the workshop's
	// ProjectDir is the directory of workshop.yaml.
	ProjectDir string
	Lookup     func(string) (string, bool) // environment; nil: none
	Home       string                      // of the caller; empty: none

	// UID and GID are the caller's; negative if the system has none.
	UID, GID int

	// Arch, IPv6, Local, Rootless, MappedIDs, Runtimes, DefaultRuntime, DataRoot and Sockets
	// describe the engine.
	Arch           string
	IPv6           bool
	Local          bool
	Rootless       bool
	MappedIDs      string
	Runtimes       []string
	DefaultRuntime string
	DataRoot       string
	Sockets        []string // paths of the engine's sockets
	// UserRuntimes are the other OCI runtimes that the user's settings allow.
	UserRuntimes []string
	// Kernels are as in [compose.Facts].
	Kernels map[workshop.Kernel]compose.KernelFacts
	// EngineDirs are the engine's own directories.
	EngineDirs []string

	// DataDir is the user's directory of this program's data ($XDG_DATA_HOME/workshop),
	// where the room of a model may have a file of; empty: nothing of it is mounted.
	DataDir string

	InitImage, InitVolume string

	// Ports are the numbers of the published ports that the workshop leaves open.
	Ports map[compose.PortKey]uint16

	// SkipContents skips the content of sources: files of copies, protected
	// directories and special files.
	SkipContents bool
	// SecretsOnDisk allows secrets outside a memory file system.
	SecretsOnDisk bool
}

func (o *Options) lookup(name string) (string, bool) {
	if o.Lookup == nil {
		return "", false
	}
	return o.Lookup(name)
}

// Collect collects the facts for [compose.WithFacts], and what is missing on this
// machine for a run. It changes nothing. Every fact that can't be collected is an
// error in the list, so that nothing starts with incomplete facts.
func Collect(ctx context.Context, o Options) (compose.Facts, *Missing, diag.List) {
	c := &collector{o: &o, missing: &Missing{at: diag.Range{Filename: o.Workshop.File}, uid: o.UID}}
	c.missing.facts = &c.facts
	dir, err := realDir(o.ProjectDir)
	if err != nil {
		c.problem("project-dir", diag.Range{Filename: o.Workshop.File}, err.Error(), "")
		return compose.Facts{}, c.missing, c.list
	}
	refused := refusedPaths(&o, dir)
	f := &c.facts
	*f = compose.Facts{
		Project: o.Project, ProjectDir: dir,
		Arch: o.Arch, IPv6: o.IPv6, Local: o.Local, MappedIDs: o.MappedIDs, Runtimes: o.Runtimes,
		DefaultRuntime: o.DefaultRuntime, UserRuntimes: o.UserRuntimes, Kernels: o.Kernels,
		InitImage: o.InitImage, InitVolume: o.InitVolume, Ports: o.Ports,
		Sources: map[string]compose.SourceFacts{}, Protected: map[string][]compose.Protected{},
	}
	if o.Local {
		if f.HostAddrs, err = hostAddrs(); err != nil {
			c.problem("host-addresses", diag.Range{Filename: o.Workshop.File}, "can't read this machine's addresses, which workers must not reach (B26): "+err.Error(), "")
		}
	}
	if o.Rootless {
		f.LoopbackAddrs = slices.Clone(userNetwork)
	}
	if p := o.Compiled.Policy; p != nil && p.HasEndpoints() {
		if f.Roots, err = Authorities(o.lookup); err != nil {
			c.problem("no-authorities", diag.Range{Filename: o.Workshop.File}, "can't read the certificates of authorities, by which the hosts of endpoints are verified: "+err.Error(),
				"install them (`apt-get install ca-certificates`), or let SSL_CERT_FILE name the file that has them")
		}
	}
	f.UID, f.GID, f.UserReason = User(o.UID, o.GID, o.lookup, dir)
	for _, r := range refused {
		f.Refused = append(f.Refused, compose.RefusedPath(r))
	}
	c.names = aliasesOf(refused)
	c.users = compose.WorkerUsers(o.Compiled, *f)
	c.sources(ctx)
	c.copies(ctx)
	c.author()
	c.builds()
	if o.Local && usesHostImage(o.Workshop) {
		f.HostPaths = HostPaths("/")
	}
	if o.Local {
		c.runtime()
	}
	return c.facts, c.missing, c.list.Sorted()
}

// collector is one run of Collect.
type collector struct {
	o     *Options
	facts compose.Facts
	// missing is created later.
	missing *Missing
	users   map[string]string // user of a worker
	names   *aliases
	problems
}

// problems collects what couldn't be found out or created.
type problems struct{ list diag.List }

func (p *problems) problem(code string, at diag.Range, summary, hint string) {
	p.list = append(p.list, diag.Diagnostic{Severity: diag.Error, Code: code, Range: at, Summary: summary, Hint: hint})
}

// realDir returns a directory's absolute path with symlinks resolved.
func realDir(dir string) (string, error) {
	abs, err := filepath.Abs(dir)
	if err == nil {
		abs, err = filepath.EvalSymlinks(abs)
	}
	if err == nil {
		var info os.FileInfo
		if info, err = os.Stat(abs); err == nil && !info.IsDir() {
			err = fmt.Errorf("%s is not a directory", abs)
		}
	}
	if err == nil && !utf8.ValidString(abs) {
		err = fmt.Errorf("the path of the project's directory, %q, is not UTF-8: engines would get another path (B7); rename it", abs)
	}
	return abs, err
}

func usesHostImage(w *workshop.Workshop) bool {
	return slices.ContainsFunc(w.Workers, func(w workshop.Worker) bool {
		return w.Container.Build == nil && w.Container.Image.V == workshop.HostImage
	})
}
