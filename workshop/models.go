package workshop

import (
	"fmt"
	"maps"
	"slices"

	"github.com/llmdo/workshop/diag"
	"github.com/llmdo/workshop/internal/image/reference"
)

// modelsForm is `models:` as it is written.
type modelsForm struct {
	Source   diag.Source
	Services map[string]modelForm `key:"services" names:"name" example:"write services: {qwen: {image: \"NAME@sha256:…\", file: qwen.gguf, sha256: …}}" doc:"Model servers by name, each in a room without a network that the host alone reaches."`
}

func (*modelsForm) title() string { return "models" }

// modelForm is one of `models.services` as it is written.
type modelForm struct {
	Source    diag.Source
	Server    *Value[string]    `key:"server" validate:"oneof=llama.cpp" literal:"What runs must be visible in the file." example:"write server: llama.cpp" default:"llama.cpp" doc:"What serves the model."`
	Image     *Value[string]    `key:"image" required:"true" validate:"imageref" literal:"What runs must be visible in the file." example:"write image: \"NAME@sha256:…\"" doc:"Image with /app/llama-server, by digest; or host, for this machine's."`
	File      *Value[string]    `key:"file" required:"true" validate:"modelfile" literal:"What runs must be visible in the file." example:"write file: qwen.gguf" doc:"GGUF file in your ~/.local/share/workshop/models."`
	SHA256    *Value[string]    `key:"sha256" required:"true" validate:"sha256" literal:"It is compared with the file." example:"write sha256: 64 hexadecimal digits, as sha256sum prints them" doc:"What the file must have."`
	Context   *Value[int64]     `key:"context" validate:"min=256,max=16777216" example:"write context: 32768" doc:"Tokens; default: the model's own."`
	Resources *partialResources `key:"resources" example:"write resources: {memory: 12G, cpu: 6}" doc:"Limits of the server, without timeout."`
}

func (*modelForm) title() string { return "a service of models" }

// ModelService is a server of a language model in a room of its own.
type ModelService struct {
	Name string
	// Server is the program: "llama.cpp".
	Server string
	// Image is by digest, from files of the project, or [HostImage].
	Image Value[string]
	// File is a name in the user's directory of models, SHA256 what it must have, in
	// small hexadecimal digits.
	File, SHA256 Value[string]
	// Context is the size of the context in tokens; 0: the model's.
	Context   Value[int64]
	Resources Resources
	At        diag.Source
}

// maxModels bounds the services of a workshop.
const maxModels = 16

const (
	modelFilePattern = `^[A-Za-z0-9][A-Za-z0-9._-]{0,121}\.gguf$`
	sha256Pattern    = `^[0-9a-f]{64}$`
)

var (
	modelFileRE = lazily(modelFilePattern)
	sha256RE    = lazily(sha256Pattern)
)

// models takes the services over, in order of their names.
func (d *decoder) models(form *modelsForm) []ModelService {
	if form == nil {
		return nil
	}
	var out []ModelService
	for _, name := range slices.Sorted(maps.Keys(form.Services)) {
		f := form.Services[name]
		s := ModelService{Name: name, Server: "llama.cpp", Image: *f.Image, File: *f.File, SHA256: *f.SHA256, Resources: defaultContainer().Resources, At: f.Source}
		set(&s.Context, f.Context)
		if f.Server != nil {
			s.Server = f.Server.V
		}
		if r := f.Resources; r != nil {
			set(&s.Resources.Memory, r.Memory)
			set(&s.Resources.CPU, r.CPU)
			set(&s.Resources.PIDs, r.PIDs)
			if r.Timeout != nil {
				d.fail(r.Timeout.Source.Range, "bad-value", "a model's server has no time limit", "remove timeout")
			}
		}
		if ref, err := reference.Parse(s.Image.V); err == nil && s.Image.V != HostImage && !ref.OnMachine() && ref.Digest == "" {
			d.fail(s.Image.Source.Range, "model-image", fmt.Sprintf("the image of the model %s is named without its digest", name),
				"write image: \"NAME@sha256:…\", as `docker manifest inspect` or the registry shows it")
		}
		out = append(out, s)
	}
	if len(out) > maxModels {
		d.fail(out[maxModels].At.Range, "too-large", fmt.Sprintf("%d services of models, more than %d", len(out), maxModels), "")
	}
	return out
}
