package workshop

import (
	"fmt"
	"path"
	"reflect"
	"strings"

	"github.com/llmdo/workshop/diag"
)

// document is the whole file.
type document struct {
	Workshop *workshopForm `key:"workshop" required:"true" example:"write workshop: {name: NAME, container: {image: IMAGE}, workers: [WORKER]}" doc:"The workshop."`
}

func (*document) title() string { return "the file" }

// workshopForm is `workshop:` as it is written.
type workshopForm struct {
	Source      diag.Source
	Name        *Value[string]              `key:"name" required:"true" validate:"name" literal:"The name is part of file and container names." example:"write name: my-workshop" doc:"Name of the workshop: lower-case letters, digits, _ and -, at most 63."`
	Version     *Value[string]              `key:"version" validate:"semver" number:"true" literal:"The version describes what is in the repository." example:"write version: 1.2.0" doc:"Semantic version of the workshop itself."`
	Description *Value[string]              `key:"description" example:"write description: Reviews a change" doc:"What the workshop is for."`
	Extends     *extendsForm                `key:"extends" example:"write extends: {from: \"git+https://git.example.org/acme/workshops//go-review\", version: ^1.4}" doc:"A workshop of another repository, a base, which this one narrows."`
	Imports     *[]importForm               `key:"imports" example:"write imports: [{as: sast, from: \"git+https://git.example.org/acme/sast-workers\", version: ^2}]" doc:"Workers of other repositories."`
	Grant       map[string]grantedContainer `key:"grant" names:"name" example:"write grant: {sast: {network: {mode: restricted, allow: [api.sast.example]}}}" doc:"What the workers of each import get, in the words of a worker's container. What isn't written here they don't get: no network, mounts, secrets, caches and variables."`
	Open        *openForm                   `key:"open" example:"write open: {workers: true}" doc:"What a project may add that extends this file."`
	Needs       *grantedContainer           `key:"needs" example:"write needs: {network: {mode: restricted, allow: [api.sast.example]}}" doc:"What the workers of this file must be granted by who imports it; a file with needs has no container. A mount without source is the one that the grant has at its target."`
	Isolation   *Value[Isolation]           `key:"isolation" validate:"oneof=docker namespace auto" literal:"The isolation must be visible in the file." example:"write isolation: namespace" default:"auto" doc:"The kind of engine: Docker, namespaces without a daemon, or the one that fits this machine (auto)."`
	Container   *partialContainer           `key:"container" required:"true" unless:"extends needs" example:"write container: {image: NAME:TAG}" doc:"What every worker gets; a worker may narrow it."`
	Workers     *[]workerEntry              `key:"workers" required:"true" unless:"extends imports" example:"write workers: [reviewer]" doc:"The workers: the name of one that has a file, or a mapping."`
	Approvals   *approvalsForm              `key:"approvals" example:"write approvals: {default: ask}" doc:"Which tool calls a person must approve."`
	MCP         map[string]mcpForm          `key:"mcp" names:"servername" example:"write mcp: {github: {command: github-mcp-server}}" doc:"MCP servers by name; each runs in the workers that list its tools."`
	Models      *modelsForm                 `key:"models" example:"write models: {services: {qwen: {image: \"NAME@sha256:…\", file: qwen.gguf, sha256: …}}}" doc:"Language models of this machine."`
}

func (*workshopForm) title() string { return "workshop" }
func (*workshopForm) keepsParts()   {}

// workerForm is the long form of a worker: where it runs, and perhaps what it does,
// which else its file says.
type workerForm struct {
	Source       diag.Source
	Name         *Value[string]    `key:"name" required:"true" validate:"name" literal:"The name finds the worker's file and names its container." example:"write name: reviewer" doc:"Name of the worker: lower-case letters, digits, _ and -, at most 63; not guard, room or room-…."`
	File         *Value[string]    `key:"file" literal:"Which files make a workshop must be visible in it." example:"write file: workers/reviewer.md" doc:"The worker's file, relative to this one; without it the file is found by name."`
	Tools        *textList         `key:"tools" literal:"What a worker is offered must be visible in the file." example:"write tools: [read_file, search_files, shell]" doc:"Defines the worker here instead of in a file, and is the limit of what it is offered; [] is nothing."`
	AllowedTools *textList         `key:"allowed-tools" literal:"What a worker is offered must be visible in the file." example:"write allowed-tools: Read, Grep" doc:"Another name of tools."`
	Description  *Value[string]    `key:"description" example:"write description: Runs the tests" doc:"What the worker is for; with tools."`
	Instructions *Value[string]    `key:"instructions" example:"write instructions: Run the tests." doc:"What the worker is to do, its prompt; with tools."`
	DelegatesTo  *textList         `key:"delegates-to" literal:"Whom a worker may call must be visible in the file." example:"write delegates-to: [scanner]" doc:"Workers of this workshop that it may call; with tools."`
	Model        *Value[string]    `key:"model" literal:"It is the worker's, and not the machine's." example:"write model: large" doc:"Kept for the program that calls the model; with tools."`
	ResultType   *Value[string]    `key:"result_type" validate:"text,oneline" literal:"Which files make a workshop must be visible in it." example:"write result_type: schemas/report.json" doc:"JSON Schema that an answer must match, relative to this file; with tools."`
	Container    *partialContainer `key:"container" example:"write container: {network: none}" doc:"Narrows what the workshop grants."`
}

func (*workerForm) title() string { return "a worker" }

var workerKeys = map[string]instead{
	"toolsets":          {"", "write tools: [read_file, shell], or `toolsets` in the worker's file"},
	"disallowed-tools":  {"", "list in tools only what the worker may use"},
	"disallowedTools":   {"", "list in tools only what the worker may use"},
	"output_schema_ref": {"", "write result_type: FILE"},
	"prompt":            {"", "write instructions: TEXT"},
	"path":              {"", "write file: workers/NAME.md"},
}

func (w *workerEntry) decode(d *decoder, n *node, f *field) bool {
	w.Source = diag.Source{Range: n.rng}
	form := workerForm{}
	before := d.errors
	switch n.kind {
	case scalarNode:
		name := *formOf(reflect.TypeFor[workerForm]()).byKey["name"]
		name.keyName = "worker"
		form.Name = &Value[string]{}
		if base := path.Base(n.text); n.tag == "!!str" && strings.HasSuffix(base, ".md") && nameRE().MatchString(strings.TrimSuffix(base, ".md")) {
			worker := strings.TrimSuffix(base, ".md")
			hint := "write " + worker
			if strings.Contains(n.text, "/") {
				hint = fmt.Sprintf("write %s, or {name: %s, file: %s}", worker, worker, clip(strings.TrimPrefix(n.text, "./")))
			}
			d.fail(n.rng, "bad-name", fmt.Sprintf("worker %q is the name of a file", clip(n.text)), hint)
			return false
		}
		if !form.Name.decode(d, n, &name) {
			return false
		}
	case mapNode:
		if d.nameAsKey(n) {
			return false
		}
		d.worker = true
		d.mapping(n, reflect.ValueOf(&form).Elem())
		d.worker = false
	default:
		d.wrongType(n, f, "a name or a mapping with a name")
		return false
	}
	if form.Name == nil {
		return false
	}
	w.Name, w.Container = *form.Name, form.Container
	if doubleDash(d, "worker", w.Name) {
		return false
	}
	if ReservedName(w.Name.V) {
		d.fail(w.Name.Source.Range, "reserved-name", fmt.Sprintf("the name %q is reserved", w.Name.V),
			"choose another name: guard, room and room-… are services of every project")
		return false
	}
	if form.File != nil {
		w.File = *form.File
		w.File.V = strings.TrimPrefix(w.File.V, "./")
		if problem := relativeProblem(w.File.V); problem != "" {
			d.fail(w.File.Source.Range, "bad-path", fmt.Sprintf("file %q %s", clip(w.File.V), problem), "write a path relative to "+d.base()+", such as workers/"+w.Name.V+".md")
			w.File = Value[string]{}
		}
	}
	w.Inline = form.inline(d, n, d.errors > before)
	return true // the worker exists, whatever is wrong with it
}

// nameAsKey reports `- NAME: {…}`, a worker as Compose has a service.
func (d *decoder) nameAsKey(n *node) bool {
	if len(n.pairs) != 1 || n.pairs[0].key.kind != scalarNode || n.pairs[0].value.kind == scalarNode && !n.pairs[0].value.isNull() {
		return false
	}
	key := n.pairs[0].key
	form := formOf(reflect.TypeFor[workerForm]())
	if _, ours := hinted(form, key.text); ours || form.byKey[key.text] != nil || !nameRE().MatchString(key.text) {
		return false
	}
	meant := d.src.workerLine(n.pairs[0])
	hint := "write " + key.text
	if f := formOf(reflect.TypeFor[workshopForm]()).byKey["workers"]; !d.trial && meant != key.text && len(meant) <= maxFlow && d.reads("["+meant+"]", f) {
		hint = "write " + meant
	} else if len(n.pairs[0].value.pairs) > 0 {
		hint = "write name: " + key.text + " as the first key, and the keys of its container below container:"
	}
	d.fail(key.rng, "unknown-key", fmt.Sprintf("unknown key %q in a worker", key.text), hint)
	return true
}

// ReservedName reports whether a worker can't have this name, because a room or
// the guard has it as a service (see package compose).
func ReservedName(name string) bool {
	return name == "guard" || name == "room" || strings.HasPrefix(name, "room-")
}

// approvalsForm is `approvals:` as it is written.
type approvalsForm struct {
	Source  diag.Source
	Default *Value[Approval] `key:"default" validate:"oneof=auto ask deny" literal:"What needs a person's yes must be visible in the file." example:"write default: ask" default:"ask" doc:"Decision for calls that no rule matches. If not set, tools that only read inside the worker run without a question and every other call is asked about; if set, it applies to reading too."`
	Rules   *[]approvalForm  `key:"rules" example:"write rules: [{tool: shell, match: git status, approval: auto}]" doc:"Rules in order; the first that matches a call decides."`
}

func (*approvalsForm) title() string { return "approvals" }
func (*approvalsForm) keepsParts()   {}

// approvalForm is one rule of approvals.
type approvalForm struct {
	Source   diag.Source
	Tool     *Value[string]   `key:"tool" required:"true" validate:"text,oneline" literal:"What needs a person's yes must be visible in the file." example:"write tool: shell" doc:"Name of the tool, mcp__SERVER, mcp__SERVER__TOOL, delegate_WORKER, or *."`
	Match    *Value[string]   `key:"match" validate:"oneline" literal:"What needs a person's yes must be visible in the file." example:"write match: git status" doc:"Which calls: the first words of a command, a path with * and **, or a host. Without it: every call."`
	Approval *Value[Approval] `key:"approval" required:"true" validate:"oneof=auto ask deny" literal:"What needs a person's yes must be visible in the file." example:"write approval: ask" doc:"Run without a question (auto), ask a person, or refuse (deny)."`
}

func (*approvalForm) title() string { return "a rule of approvals" }

func (a *approvalForm) decode(d *decoder, n *node, f *field) bool {
	if n.kind != mapNode {
		d.wrongType(n, f, "a mapping {tool, match, approval}")
		return false
	}
	return d.mapping(n, reflect.ValueOf(a).Elem()) && a.check(d)
}

func (*workshopForm) refine(form, properties object, _ *schemaMaker) {
	has := func(keys ...string) object {
		var out []object
		for _, key := range keys {
			out = append(out, object{"required": []string{key}})
		}
		return object{"anyOf": out}
	}
	form["required"] = []string{"name"}
	form["allOf"] = []object{
		has("container", "extends", "needs"), has("workers", "extends", "imports"),
		{"if": object{"not": has("extends", "open", "needs")}, "then": object{"properties": object{"container": has("image", "build")}}},
	}
	workers := properties["workers"].(object)
	workers["minItems"], workers["maxItems"], workers["uniqueItems"] = 1, maxWorkers, true
}
