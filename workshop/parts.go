package workshop

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/lib/tokens"
)

// buildForm is the long form of `build:`.
type buildForm struct {
	Source     diag.Source
	Context    *Value[string]           `key:"context" required:"true" validate:"oneline" example:"write context: ./docker/worker" doc:"Directory of the project that is the build context."`
	Dockerfile *Value[string]           `key:"dockerfile" validate:"oneline" example:"write dockerfile: Dockerfile" default:"Dockerfile" doc:"Dockerfile, relative to context."`
	Args       map[string]Value[string] `key:"args" names:"envname" number:"true" example:"write args: {GO_VERSION: \"1.26\"}" doc:"Build arguments."`
	Target     *Value[string]           `key:"target" validate:"stage" example:"write target: dev" doc:"Stage of the Dockerfile."`
}

func (*buildForm) title() string { return "build" }

func (b *Build) decode(d *decoder, n *node, f *field) bool {
	b.Source = diag.Source{Range: n.rng}
	b.Dockerfile.V = "Dockerfile"
	switch n.kind {
	case scalarNode:
		if !b.Context.decode(d, n, f) {
			return false
		}
	case mapNode:
		var form buildForm
		if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
			return false
		}
		b.Context, b.Args = *form.Context, form.Args
		if form.Dockerfile != nil {
			b.Dockerfile = *form.Dockerfile
		}
		if form.Target != nil {
			b.Target = *form.Target
		}
	default:
		d.wrongType(n, f, "a mapping with context")
		return false
	}
	before := d.errors
	d.checkSource(&b.Context, contextUse)
	if problem := relativeProblem(strings.TrimPrefix(b.Dockerfile.V, "./")); problem != "" {
		d.fail(b.Dockerfile.Source.Range, "bad-path", fmt.Sprintf("dockerfile %q %s", clip(b.Dockerfile.V), problem), "write a path relative to context, such as Dockerfile")
	}
	return d.errors == before
}

// secretForm is a secret of the workshop.
type secretForm struct {
	Source diag.Source
	Name   *Value[string] `key:"name" required:"true" validate:"secretname" literal:"Names don't depend on the machine." example:"write name: github_token" doc:"Name of the file in /run/secrets."`
	Env    *Value[string] `key:"env" validate:"envname" literal:"It is the name of the variable, not its value." example:"write env: GITHUB_TOKEN" doc:"Environment variable of the host that holds the value."`
	File   *Value[string] `key:"file" validate:"text,oneline" example:"write file: ./ca.pem" doc:"File of the host that holds the value."`
}

func (*secretForm) title() string { return "a secret" }

// secretHint is the secret that a name alone stands for.
func secretHint(name string) string {
	if !envNameRE().MatchString(name) || tokens.In(name) != "" { // in other letters it would not be masked
		return "write {name: NAME, env: VARIABLE} or {name: NAME, file: ./FILE}"
	}
	return fmt.Sprintf("write {name: %s, env: %s} for the value of that variable of the host", strings.ToLower(clip(name)), strings.ToUpper(clip(name)))
}

func (s *Secret) decode(d *decoder, n *node, f *field) bool {
	s.At = diag.Source{Range: n.rng}
	var form secretForm
	switch {
	case n.kind == scalarNode && d.worker:
		name := *formOf(reflect.TypeFor[secretForm]()).byKey["name"]
		name.keyName = "secret"
		form.Name = &Value[string]{}
		if !form.Name.decode(d, n, &name) {
			return false
		}
	case n.kind == mapNode:
		if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
			return false
		}
	case n.kind == scalarNode && !n.isNull():
		d.fail(n.rng, "bad-secret", fmt.Sprintf("the secret %q has neither env nor file", clip(n.text)), secretHint(n.text))
		return false
	default:
		d.wrongType(n, f, "a mapping {name, env} or {name, file}")
		return false
	}
	s.Name = form.Name.V
	given := 0
	if form.Env != nil {
		s.Env = form.Env.V
		given++
	}
	if form.File != nil {
		s.File = *form.File
		given++
	}
	switch {
	case d.worker && given > 0:
		d.fail(n.rng, "bad-secret", "a worker only names secrets; the workshop's container says where the values come from", "write secrets: ["+s.Name+"]")
		return false
	case !d.worker && given != 1:
		d.fail(n.rng, "bad-secret", fmt.Sprintf("the secret %q needs exactly one of env and file", s.Name), "write {name: "+s.Name+", env: VARIABLE} or {name: "+s.Name+", file: ./FILE}")
		return false
	}
	if form.File == nil || d.as != ownFile { // the project says where it is
		return true
	}
	before := d.errors
	d.checkSource(&s.File, secretUse)
	return d.errors == before
}
