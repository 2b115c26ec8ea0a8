package namespace

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/compose-spec/compose-go/v2/types"

	"github.com/llmdo/workshop/internal/engine"
	"github.com/llmdo/workshop/internal/image"
	"github.com/llmdo/workshop/internal/image/reference"
	"github.com/llmdo/workshop/internal/vm/root"
)

// imageID returns the ID of an image, "" if there is none. For workshop-init's it
// checks for the program.
func (e *Engine) imageID(ctx context.Context, ref string) (string, error) {
	if n, err := e.init.Names(arch); err == nil && ref == n.ImageID {
		if e.hasProgram() {
			return ref, nil
		}
		return "", nil
	}
	img, err := e.lookUp(ctx, ref)
	if err != nil || img == nil {
		return "", err
	}
	return img.ID, nil
}

// lookUp returns an image of the store; nil if the store doesn't have it.
func (e *Engine) lookUp(ctx context.Context, ref string) (*image.Image, error) {
	parsed, err := reference.Parse(ref)
	if err != nil {
		return nil, nil //nolint:nilerr // the name of a built image, which is refused elsewhere
	}
	store, err := e.store()
	if err != nil {
		return nil, fmt.Errorf("the images in the cache: %w", err)
	}
	return store.Lookup(ctx, parsed)
}

// pull pulls the image of a step into the store.
func (e *Engine) pull(ctx context.Context, p *engine.Plan, s engine.Step, emit func(engine.Event)) error {
	ref, err := reference.Parse(s.Key)
	if err != nil {
		return err
	}
	policy := image.Missing
	if p.Compiled.Project.Services[s.Service].PullPolicy == types.PullPolicyAlways {
		policy = image.Always
	}
	store, err := e.store()
	if err != nil {
		return err
	}
	_, err = store.Get(ctx, ref, policy, func(current, total int64, detail string) {
		emit(engine.Event{Step: s, Status: engine.StepProgress, Detail: detail, Current: current, Total: total})
	})
	return err
}

// imageOf returns the function by which a translation gets images.
func (e *Engine) imageOf(ctx context.Context) func(string) (workerImage, error) {
	return func(ref string) (workerImage, error) {
		img, err := e.lookUp(ctx, ref)
		if err != nil {
			return workerImage{}, err
		}
		if img == nil {
			return workerImage{}, missingImage(ref)
		}
		dir, err := filepath.EvalSymlinks(img.RootFS)
		if err != nil {
			return workerImage{}, err
		}
		return workerImage{
			id: img.ID, dir: dir, env: img.Config.Env, user: img.Config.User,
			workingDir: img.Config.WorkingDir, volumes: img.Config.Volumes,
		}, nil
	}
}

// diskOf returns the function by which a translation gets the root file systems of virtual
// machines. One is made at the first call for an image, and kept with it.
func (e *Engine) diskOf(ctx context.Context) func(string) (string, error) {
	return func(ref string) (string, error) {
		img, err := e.lookUp(ctx, ref)
		if err != nil {
			return "", err
		}
		if img == nil {
			return "", missingImage(ref)
		}
		store, err := e.store()
		if err != nil {
			return "", err
		}
		return root.Of(ctx, store, img)
	}
}

func missingImage(ref string) error {
	return errors.New("image " + ref + " is not in the store: run `workshop up` again")
}

// pendingImage is for checking a project before its images are pulled.
func pendingImage(string) (workerImage, error) { return workerImage{pending: true}, nil }
