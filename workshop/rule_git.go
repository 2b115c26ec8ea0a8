package workshop

import (
	"reflect"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/firewall/request"
)

// gitForm is `git:` of a line of allow.
type gitForm struct {
	Source        diag.Source
	Read          *repositoryList `key:"read" example:"write read: [acme/app]" doc:"OWNER/NAME, OWNER/*, \"**\"."`
	Push          *refsTable      `key:"push" example:"write push: {acme/app: [\"agent/*\"]}" doc:"Branches, or refs in full: refs/tags/*."`
	Delete        *refsTable      `key:"delete" example:"write delete: {acme/app: [\"agent/*\"]}" doc:"Likewise."`
	AnyRepository *Value[bool]    `key:"any_repository" literal:"The policy is a generated file." example:"write any_repository: true" default:"false" doc:"Confirms \"**\" for a credential."`
}

func (*gitForm) title() string { return "git of a network rule" }

var gitKeys = map[string]instead{
	"write": {"", hintPush}, "refs": {"", hintPush}, "branches": {"", hintPush}, "force": {"A push that drops commits can't be told from another without the objects.", "protect branches at the host; keep push to branches such as agent/*"},
	"clone": {"", hintRead}, "fetch": {"", hintRead}, "pull": {"", hintRead}, "repository": {"", hintRead}, "repositories": {"", hintRead},
}

const (
	hintRead = "write read: [acme/app]"
	hintPush = "write push: {acme/app: [\"agent/*\"]}"
	hintGit  = "write git: {read: [acme/app], push: {acme/app: [\"agent/*\"]}}"
)

// gitRules is what gitForm says.
type gitRules struct{ rules request.Git }

func (g *gitRules) decode(d *decoder, n *node, f *field) bool {
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping with read or push")
		return false
	}
	var form gitForm
	if !d.mapping(n, reflect.ValueOf(&form).Elem()) {
		return false
	}
	if form.Read != nil {
		g.rules.Read = *form.Read
	}
	if form.Push != nil {
		g.rules.Push = request.Refs(*form.Push)
	}
	if form.Delete != nil {
		g.rules.Delete = request.Refs(*form.Delete)
	}
	g.rules.AnyRepository = form.AnyRepository != nil && form.AnyRepository.V
	if err := g.rules.Check(); err != nil {
		d.fail(n.rng, "bad-endpoint", err.Error(), hintGit)
		return false
	}
	return true
}

func (g *gitRules) schema(m *schemaMaker) object { return m.of(reflect.TypeFor[gitForm](), nil) }

func (*gitForm) refine(form, _ object, _ *schemaMaker) { form["minProperties"] = 1 }

// repositoryList is `read:`: a repository or a list of them.
type repositoryList []request.Repository

func (l *repositoryList) decode(d *decoder, n *node, f *field) bool {
	return policyTexts(d, n, f, request.ParseRepository, (*[]request.Repository)(l))
}

// policyTexts reads a scalar or a list of them into out, and refuses an empty one.
func policyTexts[T any](d *decoder, n *node, f *field, parse func(string) (T, error), out *[]T) bool {
	nodes := []*node{n}
	if n.kind == listNode {
		nodes = n.items
	}
	ok := true
	for _, x := range nodes {
		text, read := d.policyText(x, f)
		if !read {
			ok = false
			continue
		}
		v, err := parse(text.V)
		if err != nil {
			d.fail(text.Source.Range, "bad-value", f.name()+": "+err.Error(), "")
			ok = false
			continue
		}
		*out = append(*out, v)
	}
	if ok && len(*out) == 0 {
		d.fail(n.rng, "bad-value", f.name()+" is empty", f.example)
		return false
	}
	return ok
}

// The patterns are in the JSON Schema; the parsers decide.
const (
	repositoryPattern = `^(\*\*|[A-Za-z0-9._~+@,=-]+|[A-Za-z0-9._~+@,=*-]+(/[A-Za-z0-9._~+@,=*-]+)+)$`
	refPattern        = `^[^\s~^:?\\\[]+$`
)

func textOrList(pattern string) object {
	one := object{"type": "string", "pattern": pattern}
	return object{"anyOf": []object{one, {"type": "array", "items": one, "minItems": 1, "maxItems": request.MaxRules}}}
}

func (*repositoryList) schema(*schemaMaker) object { return textOrList(repositoryPattern) }

// refsTable is `push:` or `delete:`: refs by repositories.
type refsTable request.Refs

func (t *refsTable) decode(d *decoder, n *node, f *field) bool {
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping of repositories to branches")
		return false
	}
	ok := true
	for _, p := range d.keys(n) {
		repository, err := request.ParseRepository(p.key.text)
		if err != nil {
			d.fail(p.key.rng, "bad-value", f.name()+": "+err.Error(), "")
			ok = false
			continue
		}
		x := request.RefsOf{Repository: repository}
		if !policyTexts(d, p.value, f.key(p.key.text), request.ParseRef, &x.Refs) {
			ok = false
			continue
		}
		*t = append(*t, x)
	}
	request.Refs(*t).Sort()
	return ok
}

func (*refsTable) schema(*schemaMaker) object {
	return object{"type": "object", "minProperties": 1, "propertyNames": object{"pattern": repositoryPattern}, "additionalProperties": textOrList(refPattern)}
}
