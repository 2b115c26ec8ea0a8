package compose

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/workshop"
)

// initImage is the image of rooms, guards and workers with `image: host`, as
// rendered; WithFacts replaces it by the machine's.
const initImage = "${" + VarInitImage + ":?" + loadHint + "}"

// loadHint is what Compose prints when the machine's part is missing.
const loadHint = "run workshop compile --load"

// image sets what a worker's root filesystem is.
func (c *compiler) image(s *types.ServiceConfig, k *workshop.Container) {
	switch {
	case k.Build != nil:
		c.build(s, k.Build)
	case k.Image.V == workshop.HostImage:
		c.initImage(s, k.Image.Source)
	default:
		s.Image = k.Image.V
		c.origin(s.Name, "image", k.Image.Source)
		// `missing` is the default, and 1.29 calls it by another name.
		if k.Pull.V != workshop.PullMissing {
			s.PullPolicy = string(k.Pull.V)
			c.origin(s.Name, "pull_policy", k.Pull.Source)
		}
	}
}

// initImage makes the image of a service ours. It is loaded, never pulled.
func (c *compiler) initImage(s *types.ServiceConfig, src diag.Source) {
	s.Image = initImage
	s.PullPolicy = types.PullPolicyNever
	c.origin(s.Name, "image", diag.Source{Range: src.Range, Template: initImage})
}

// build sets an image that is built from the repository. Workers with the same
// build share the image: its name is made of what the file says (templates,
// not the values of variables).
func (c *compiler) build(s *types.ServiceConfig, b *workshop.Build) {
	dockerfile := b.Dockerfile.V
	if dockerfile == "" {
		dockerfile = "Dockerfile"
	}
	cfg := &types.BuildConfig{
		Context:    generatedPath(b.Context.V),
		Dockerfile: dockerfile,
		Target:     b.Target.V,
	}
	h := sha256.New()
	for _, part := range []string{
		templateOf(b.Context.V, b.Context.Source), templateOf(dockerfile, b.Dockerfile.Source), templateOf(b.Target.V, b.Target.Source),
	} {
		h.Write([]byte(part + "\x00"))
	}
	for _, name := range slices.Sorted(maps.Keys(b.Args)) {
		if cfg.Args == nil {
			cfg.Args = types.MappingWithEquals{}
		}
		v := b.Args[name]
		cfg.Args[name] = ptr(v.V)
		h.Write([]byte(name + "\x00" + templateOf(v.V, v.Source) + "\x00"))
		c.origin(s.Name, "build.args."+name, v.Source)
	}
	s.Build = cfg
	s.Image = "workshop-" + c.w.Name.V + ":" + hex.EncodeToString(h.Sum(nil)[:6])
	c.origin(s.Name, "build", b.Source)
	c.origin(s.Name, "build.context", pathSource(b.Context.V, b.Context.Source))
	c.origin(s.Name, "build.dockerfile", b.Dockerfile.Source)
	c.origin(s.Name, "build.target", b.Target.Source)
}
