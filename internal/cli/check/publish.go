package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Publish is the verb publish.
func Publish(p *command.Program) *cobra.Command {
	a := verbs{p}
	var o app.PublishOptions
	cmd := &cobra.Command{
		Use:   "publish REGISTRY/REPOSITORY:VERSION",
		Short: "Put the workshop into a registry, for others",
		Long: `publish puts the workshop into a registry of images, where others extend or import
it. It packs the files that the workshop is read from, and nothing else that lies
there: workshop.yaml, workers' files, schemas. They must be plain files of the
project, and as they are committed. Keys, tokens, files of variables, and mounts
that lead out of the project are refused.

VERSION is a semantic version, and that of the file if it has one. A tag that is
there with other content is refused; with the same, there is nothing to do.
Credentials are those of ` + "`docker login`" + `.

--sign-key signs the digest by ssh-keygen (namespace workshop), with a file of an SSH
key or an agent's. --dry-run shows what would be published, and contacts nobody.`,
		Example: `  workshop publish --dry-run registry.example.org/acme/go-review:v1.4.2
  workshop publish --sign-key ~/.ssh/release registry.example.org/acme/go-review:v1.4.2`,
		Args: command.Args(1, 1),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			if o.DryRun && o.SignKey != "" {
				return command.UsageError(cmd, "--dry-run signs nothing: --sign-key has no meaning with it")
			}
			o.Ref, o.Ask = args[0], a.Asker()
			return a.publish(ctx, o)
		}),
	}
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	cmd.Flags().BoolVar(&o.DryRun, "dry-run", false, "show what would be published, and contact nobody")
	cmd.Flags().StringVar(&o.SignKey, "sign-key", "", "file of the SSH key that signs")
	_ = cmd.MarkFlagFilename("sign-key")
	return cmd
}

func (a verbs) publish(ctx context.Context, o app.PublishOptions) error {
	r, err := a.Publish(ctx, o)
	if err != nil {
		return err
	}
	size, width := 0, 0
	for name, text := range r.Files {
		size, width = size+len(text), max(width, len(name))
	}
	fmt.Fprintf(a.Out, "%s, %s, of the commit %.12s\n", app.Count(len(r.Files), "file"), app.Count(size, "byte"), r.Commit)
	for _, name := range slices.Sorted(maps.Keys(r.Files)) {
		fmt.Fprintf(a.Out, "  %-*s  %d\n", width, name, len(r.Files[name]))
	}
	fmt.Fprintf(a.Out, "tree    %s\ndigest  %s\n", r.Tree, r.Digest)
	signer := ""
	if r.Key != "" {
		fmt.Fprintf(a.Out, "signed  %s\n", r.Key)
		signer = fmt.Sprintf(", signer: %q", r.Key)
	}
	at := fmt.Sprintf("from: %q, version: %s%s}", r.From, r.Range(), signer)
	if r.Base {
		fmt.Fprintf(a.Out, "others extend it:\n  extends: {%s\n", at)
	} else {
		fmt.Fprintf(a.Out, "others import it, and grant what it needs:\n  imports:\n    - {as: %s, %s\n", strings.ReplaceAll(r.Name, "--", "-"), at)
	}
	switch name := r.From + ":" + r.Tag; {
	case o.DryRun:
		a.Say("%s would be published; nobody was contacted", name)
	case r.New:
		a.Say("published %s", name)
	case r.Signed:
		a.Say("%s is there with the same content; the signature was added", name)
	default:
		a.Say("%s is there with the same content; nothing was published", name)
	}
	return nil
}
