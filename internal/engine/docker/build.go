package docker

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/docker/api/types/build"
	"github.com/docker/docker/pkg/jsonmessage"
	"github.com/moby/patternmatcher"
	"github.com/moby/patternmatcher/ignorefile"

	"github.com/llmdo/workshop/compose"
	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/engine/copytree"
	"github.com/llmdo/workshop/internal/lib/boundedfile"
)

// Build is one image that a plan builds. The user is asked to approve it, once per
// Hash.
type Build struct {
	// Services that run the image, sorted.
	Services []string
	Context  string // absolute directory
	// Dockerfile is relative to Context.
	Dockerfile string
	Args       map[string]string
	Target     string
	// Hash identifies the files of the context that are sent, the Dockerfile, args
	// and target.
	Hash string
	// Content is [ContentHash] of the same files.
	Content string
	Files   int
	Bytes   int64
	// Text of the Dockerfile that has the Hash; only where the user is asked.
	Text []byte
}

// ErrNotApproved refuses a build that wasn't approved.
var ErrNotApproved = errors.New("building an image runs its Dockerfile on the engine and was not approved; run `workshop up` on a terminal, or with --yes")

// Builds reads the build contexts of a project and returns a Build per content, in
// order of the first service. Hashes makes [engine.Desired.Builds] of them.
func Builds(ctx context.Context, c *compose.Compiled) ([]Build, error) {
	var out []Build
	for _, service := range sortedKeys(c.Project.Services) {
		s := c.Project.Services[service]
		if s.Build == nil {
			continue
		}
		b, err := newBuild(c, service, s.Build)
		if err == nil {
			err = b.read(ctx, io.Discard)
		}
		if err != nil {
			return nil, fmt.Errorf("build of %s: %w", service, err)
		}
		if i := slices.IndexFunc(out, func(o Build) bool { return o.Hash == b.Hash }); i >= 0 {
			out[i].Services = append(out[i].Services, service)
			continue
		}
		out = append(out, b)
	}
	return out, nil
}

// Hashes maps every service of the builds to its hash.
func Hashes(builds []Build) map[string]string {
	out := map[string]string{}
	for _, b := range builds {
		for _, s := range b.Services {
			out[s] = b.Hash
		}
	}
	return out
}

// newBuild is a build whose files are not yet read, see [Build.read].
func newBuild(c *compose.Compiled, service string, cfg *types.BuildConfig) (Build, error) {
	if err := checkKnown("build", cfg); err != nil {
		return Build{}, err
	}
	b := Build{Services: []string{service}, Dockerfile: cfg.Dockerfile, Target: cfg.Target, Args: map[string]string{}}
	if b.Dockerfile == "" {
		b.Dockerfile = "Dockerfile"
	}
	for name, value := range cfg.Args {
		if value == nil {
			return Build{}, fmt.Errorf("build argument %s has no value", name)
		}
		b.Args[name] = *value
	}
	b.Context = engine.HostPath(c, cfg.Context)
	if !filepath.IsAbs(b.Context) {
		return Build{}, fmt.Errorf("the context %q is not absolute, and the project directory is not known", cfg.Context)
	}
	return b, nil
}

// read writes the context to w, and sets what of the build follows from the same bytes.
func (b *Build) read(ctx context.Context, w io.Writer) error {
	options, err := json.Marshal([]any{b.Dockerfile, b.Target, b.Args})
	if err != nil {
		return err
	}
	h := sha256.New()
	h.Write(options)
	b.Content, err = contentOf(func(content io.Writer) (err error) {
		b.Files, b.Bytes, err = writeContext(ctx, io.MultiWriter(w, h, content), b.Context, b.Dockerfile)
		return err
	})
	b.Hash = hex.EncodeToString(h.Sum(nil))
	return err
}

// writeContext writes a build context as a tar that depends only on names, modes
// and content. It honours .dockerignore, but always includes the Dockerfile.
func writeContext(ctx context.Context, w io.Writer, dir, dockerfile string) (files int, size int64, err error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return 0, 0, err
	}
	defer root.Close()
	if _, err := boundedfile.ReadIn(root, dockerfile, maxDockerfile); errors.Is(err, fs.ErrNotExist) {
		return 0, 0, fmt.Errorf("no Dockerfile %q in %s", dockerfile, dir)
	} else if err != nil {
		return 0, 0, fmt.Errorf("the Dockerfile in %s: %w", dir, err)
	}
	ignored, err := dockerignore(root)
	if err != nil {
		return 0, 0, err
	}
	tw := tar.NewWriter(w)
	err = fs.WalkDir(copytree.Files(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if name != filepath.ToSlash(filepath.Clean(dockerfile)) && name != ".dockerignore" {
			out, err := ignored.matches(name)
			if err != nil {
				return fmt.Errorf(".dockerignore: %w", err)
			}
			if out {
				// A later line may include something below it again, and the Dockerfile may
				// be below it.
				if d.IsDir() && !ignored.Exclusions() && !strings.HasPrefix(filepath.ToSlash(dockerfile), name+"/") {
					return fs.SkipDir
				}
				return nil
			}
		}
		if files++; files > copytree.MaxFiles {
			return fmt.Errorf("more than %d files in %s; leave some out with .dockerignore", copytree.MaxFiles, dir)
		}
		n, err := copytree.Entry(tw, root, name, d, copytree.Options{})
		if err != nil {
			return fmt.Errorf("%s: %w", filepath.Join(dir, name), err)
		}
		if size += n; size > copytree.MaxBytes {
			return fmt.Errorf("more than %d bytes in %s; leave something out with .dockerignore", int64(copytree.MaxBytes), dir)
		}
		return nil
	})
	return files, size, errors.Join(err, tw.Close())
}

// ignoring is the patterns of .dockerignore, with the remaining time for matching.
type ignoring struct {
	*patternmatcher.PatternMatcher
	left time.Duration
}

// maxIgnoring bounds the time for matching the files of one context. The cost of a
// pattern, a regular expression, isn't known in advance.
const maxIgnoring = 30 * time.Second

func (i *ignoring) matches(name string) (bool, error) {
	begin := time.Now()
	out, err := i.MatchesOrParentMatches(name)
	if i.left -= time.Since(begin); i.left < 0 {
		return false, errors.New("matching its patterns takes too long; use fewer and shorter ones, and exclude whole directories")
	}
	return out, err
}

func dockerignore(root *os.Root) (*ignoring, error) {
	data, err := boundedfile.ReadIn(root, ".dockerignore", maxIgnoreFile)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	patterns, err := ignorefile.ReadAll(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	if len(patterns) > maxIgnored {
		return nil, fmt.Errorf(".dockerignore has %d patterns, at most %d are possible; exclude whole directories", len(patterns), maxIgnored)
	}
	matcher, err := patternmatcher.New(patterns)
	if err != nil {
		return nil, fmt.Errorf(".dockerignore: %w", err)
	}
	return &ignoring{matcher, maxIgnoring}, nil
}

// Limits of files of a build context, in bytes.
const (
	maxIgnoreFile = 256 << 10
	maxDockerfile = 1 << 20
)

// maxIgnored bounds the patterns of .dockerignore: each is matched with each file.
const maxIgnored = 1000

// approve calls ApproveBuild for every build of the plan.
func (e *Engine) approve(ctx context.Context, p *engine.Plan) error {
	asked := map[string]bool{}
	for _, s := range p.Steps {
		hash := p.Desired.Builds[s.Service]
		if s.Op != engine.OpBuildImage || asked[hash] {
			continue
		}
		asked[hash] = true
		if e.opts.ApproveBuild == nil {
			return ErrNotApproved
		}
		b, files, err := spool(ctx, p, s.Service)
		if err != nil {
			return err
		}
		b.Services = slices.DeleteFunc(sortedKeys(p.Desired.Builds), func(service string) bool { return p.Desired.Builds[service] != hash })
		b.Text, err = dockerfileIn(files, b.Dockerfile)
		files.Close()
		if err != nil {
			return err
		}
		if err := e.opts.ApproveBuild(ctx, b); err != nil {
			return err
		}
	}
	return nil
}

// build sends exactly the context that was hashed: it first writes it to a file and
// compares the hash with the plan's.
func (e *Engine) build(ctx context.Context, p *engine.Plan, s engine.Step, emit func(engine.Event)) error {
	b, spooled, err := spool(ctx, p, s.Service)
	if err != nil {
		return err
	}
	defer spooled.Close()
	text, err := dockerfileIn(spooled, b.Dockerfile)
	if err != nil {
		return err
	}
	args := map[string]*string{}
	for name, value := range b.Args {
		args[name] = &value
	}
	resp, err := e.cli.ImageBuild(ctx, spooled, build.ImageBuildOptions{
		Tags: []string{s.Key}, Dockerfile: filepath.ToSlash(b.Dockerfile), Target: b.Target, BuildArgs: args,
		Remove: true, ForceRemove: true, AuthConfigs: e.buildCredentials(text, b.Args), Labels: map[string]string{labelBuild: b.Hash},
	})
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var last []string
	err = messages(resp.Body, func(m *jsonmessage.JSONMessage) {
		line := strings.TrimRight(m.Stream+m.Status, "\n")
		if line == "" {
			return
		}
		last = append(last[max(0, len(last)-19):], line)
		emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: line})
	})
	if err != nil {
		return fmt.Errorf("build of %s: %w\n%s", s.Service, err, strings.Join(last, "\n"))
	}
	return nil
}
