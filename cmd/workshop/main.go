// Command workshop manages workshops: rooms in which LLM workers run their
// tools. Its commands are those of `llmdo workshop`.
package main

import (
	"os"

	"github.com/llmdo/workshop/internal/cli"
	_ "github.com/llmdo/workshop/internal/lib/watchprobe" // before the runtime needs a watch
)

func main() { os.Exit(cli.Main(cli.NewWorkshop)) }
