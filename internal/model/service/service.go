// Package service makes of a service of `models` the workshop of its room: one worker without
// a network, without tools and without anything that it may write but memory, in which
// the host starts the server.
package service

import (
	"path"
	"strconv"
	"time"

	"github.com/llmdo/workshop/firewall"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/workshop"
)

// Names in the room of a model.
const (
	Worker      = "model"
	Port        = 8080 // of the room's loopback, where the server listens
	KeySecret   = "model_key"
	KeyVariable = "WORKSHOP_MODEL_KEY" // from which the worker's secret is made
	ofVariable  = "WORKSHOP_MODEL"     // what else the room is for, so that another needs a new room
	modelsDir   = "/models"
)

// Suffix is what the project of a service has after its workshop's name.
func Suffix(name string) string { return "-model-" + name }

// Room is the workshop of a service: file is the model's, an absolute path of this machine.
func Room(w *workshop.Workshop, s *workshop.ModelService, file string) *workshop.Workshop {
	at := s.At
	c := workshop.Container{
		Source:    at,
		Image:     s.Image,
		Pull:      workshop.Value[workshop.PullPolicy]{V: workshop.PullMissing},
		Workdir:   workshop.Value[string]{V: "/tmp"},
		Network:   workshop.Network{Mode: workshop.Value[firewall.Mode]{V: firewall.None}, Source: at},
		Scratch:   workshop.Value[workshop.Size]{V: small},
		Tmp:       workshop.Value[workshop.Size]{V: small},
		Shm:       workshop.Value[workshop.Size]{V: small},
		Home:      workshop.Value[workshop.Size]{V: small},
		Resources: s.Resources,
		Mounts: []workshop.Mount{{
			Source:         workshop.Value[string]{V: file, Source: s.File.Source},
			Target:         workshop.Value[string]{V: path.Join(modelsDir, s.File.V), Source: s.File.Source},
			OutsideProject: true,
			At:             s.File.Source,
		}},
		// A file that was replaced is still the old one in its mount, and a server goes on with the
		// context that it began with.
		Env:     map[string]workshop.Value[string]{ofVariable: {V: s.SHA256.V + " " + strconv.FormatInt(s.Context.V, 10), Source: at}},
		Secrets: []workshop.Secret{{Name: KeySecret, Env: KeyVariable, At: at}},
	}
	c.Resources.Timeout = workshop.Value[time.Duration]{V: 10 * time.Minute}
	return &workshop.Workshop{
		File: w.File, Name: workshop.Value[string]{V: w.Name.V + Suffix(s.Name), Source: at}, Isolation: w.Isolation, Container: c,
		Workers: []workshop.Worker{{Name: Worker, Source: at, File: w.File, Container: c}},
	}
}

// small is the size of the room's memory file systems, in bytes: a server keeps nothing
// there.
const small = 16 << 20

// Command starts the server of a service in its room: it serves no pages, looks for nothing
// elsewhere, and wants the key.
func Command(s *workshop.ModelService) []string {
	program := "/app/llama-server" // of llama.cpp's own images
	if ref, err := reference.Parse(s.Image.V); err == nil && ref.Kind == reference.Host {
		program = "llama-server"
	}
	argv := []string{
		program, "--model", path.Join(modelsDir, s.File.V), "--alias", s.Name,
		"--host", "127.0.0.1", "--port", strconv.Itoa(Port),
		"--api-key-file", "/run/secrets/" + KeySecret, "--offline", "--no-ui", "--no-slots",
	}
	if s.Context.V > 0 {
		argv = append(argv, "--ctx-size", strconv.FormatInt(s.Context.V, 10))
	}
	return argv
}
