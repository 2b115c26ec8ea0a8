package model

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/llmdo/workshop/internal/app"
	"github.com/llmdo/workshop/internal/cli/command"
)

// Serve is the process that serves a model; models up starts it.
func Serve(p *command.Program) *cobra.Command {
	return &cobra.Command{
		Use:    app.ModelVerb,
		Short:  "Serve a model of this machine",
		Hidden: true,
		RunE: p.Run(func(ctx context.Context, _ *cobra.Command, _ []string) error {
			return p.ServeModel(ctx, p.In, p.Out)
		}),
	}
}

// complete offers the names of the workshop's models.
func (a verbs) complete(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return command.Beginning(prefix, nil, a.CompletionSource(cmd).ModelNames()), cobra.ShellCompDirectiveNoFileComp
}

func (a verbs) lsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "ls",
		Short: "List the workshop's models",
		Long: `ls lists the models of workshop.yaml, and how each stands: ready, down, or stopped where
its room is up and its server has ended. With --format json it says where its log is.`,
		Example: `  llmdo models ls
  llmdo models ls --format json`,
		Annotations: command.Formats("table", "json"),
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, _ []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			c, err := a.Compile(ctx)
			if err != nil {
				return err
			}
			list := a.Models(ctx, c)
			if format == "json" {
				return a.WriteJSON(list)
			}
			if a.Quiet {
				for _, m := range list {
					fmt.Fprintln(a.Out, m.Name)
				}
				return nil
			}
			t := a.Table()
			fmt.Fprintln(t, "MODEL\tSTATE\tFILE\tPORT")
			for _, m := range list {
				file := m.File
				if m.Problem != "" {
					file += " (" + m.Problem + ")"
				}
				fmt.Fprintln(t, strings.Join([]string{m.Name, m.State, file, m.Loopback}, "\t"))
			}
			return t.Flush()
		}),
	}
}

func (a verbs) checkCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check [MODEL]",
		Short: "Compare the files of models with their sha256",
		Long: `check compares the files in your directory of models, ~/.local/share/workshop/models,
with what workshop.yaml says of them: that they are there, are GGUF, fit into the memory
of their server, and have the sha256. ` + "`workshop up`" + ` does the same. A file is read
once, and again when it changed.`,
		Example: `  llmdo models check
  llmdo models check qwen`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: a.complete,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			c, err := a.Compile(ctx)
			if err != nil {
				return err
			}
			name := strings.Join(args, "")
			if name != "" {
				if _, err := c.ModelService(name); err != nil {
					return err
				}
			}
			if err := a.CheckModels(ctx, c, name); err != nil {
				return err
			}
			n := len(c.Workshop.Models)
			if name != "" {
				n = 1
			}
			a.Say("%s: as the workshop says", app.Count(n, "model"))
			return nil
		}),
	}
}

func (a verbs) upCommand() *cobra.Command {
	wait := app.DefaultModelWait
	cmd := &cobra.Command{
		Use:   "up [MODEL]",
		Short: "Start a model in a room of its own",
		Long: `up checks the file of a model, brings its room up, a container without a network, and
starts the server in it. It returns when that is ready. No worker, no other container
and no page of a browser reaches the server; ` + "`models url`" + ` says how a program of
this machine does. It goes on until ` + "`models down`" + `, or ` + "`workshop down`" + `.`,
		Example: `  llmdo models up
  llmdo models up qwen --wait-timeout 10m`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: a.complete,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			m, err := a.up(ctx, strings.Join(args, ""), wait)
			if err != nil {
				return err
			}
			a.Say("%s is ready; its address and key: `llmdo models url %s`", m.Service.Name, m.Service.Name)
			return nil
		}),
	}
	cmd.Flags().DurationVar(&wait, "wait-timeout", wait, "how long to wait until the model is loaded")
	return cmd
}

func (a verbs) up(ctx context.Context, name string, wait time.Duration) (*app.Model, error) {
	c, err := a.CompileToRun(ctx)
	if err != nil {
		return nil, err
	}
	m, err := a.Model(ctx, c, name)
	if err != nil {
		return nil, err
	}
	return m, a.UpModel(ctx, m, wait, a.Asker())
}

func (a verbs) downCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "down [MODEL]",
		Short: "End a model, or all of the workshop",
		Long: `down ends the servers of a workshop's models and removes their rooms and keys. The files
of the models stay. ` + "`workshop down`" + ` does it, too.`,
		Example: `  llmdo models down
  llmdo models down qwen`,
		Args:              command.Args(0, 1),
		ValidArgsFunction: a.complete,
		RunE: a.Run(func(ctx context.Context, _ *cobra.Command, args []string) error {
			c, err := a.Compile(ctx)
			if err != nil {
				return err
			}
			return a.DownModels(ctx, c, strings.Join(args, ""))
		}),
	}
}

func (a verbs) urlCommand() *cobra.Command {
	loopback := false
	cmd := &cobra.Command{
		Use:   "url [MODEL]",
		Short: "Print how a program of this machine reaches a model",
		Long: `url starts a model where it isn't up, and prints variables by which a program of this
machine reaches it: the base URL of its OpenAI API, the key, and the unix socket, which
is yours alone. With --loopback it has a port of 127.0.0.1, which every user and program
of this machine can connect to: the key is the only lock then. Requests of a browser's
pages are refused on both.`,
		Example: `  llmdo models url qwen
  export $(llmdo models url qwen --loopback)
  llmdo models url qwen --format json`,
		Annotations:       command.Formats("env", "json"),
		Args:              command.Args(0, 1),
		ValidArgsFunction: a.complete,
		RunE: a.Run(func(ctx context.Context, cmd *cobra.Command, args []string) error {
			format, err := a.Format(cmd)
			if err != nil {
				return err
			}
			m, err := a.up(ctx, strings.Join(args, ""), app.DefaultModelWait)
			if err != nil {
				return err
			}
			u, err := a.ModelURL(ctx, m, loopback)
			if err != nil {
				return err
			}
			if format == "json" {
				return a.WriteJSON(u)
			}
			fmt.Fprintf(a.Out, "OPENAI_BASE_URL=%s\nOPENAI_API_KEY=%s\n", u.URL, u.Key)
			if u.Socket != "" {
				fmt.Fprintf(a.Out, "LLMDO_MODEL_SOCKET=%s\n", app.Printable(u.Socket))
				a.Say("for example: `curl --unix-socket $LLMDO_MODEL_SOCKET -H \"Authorization: Bearer $OPENAI_API_KEY\" $OPENAI_BASE_URL/models`")
			} else {
				a.Say("every program of this machine can connect to this port: the key is the only lock")
			}
			return nil
		}),
	}
	cmd.Flags().BoolVar(&loopback, "loopback", false, "a port of 127.0.0.1 in place of the socket")
	return cmd
}
