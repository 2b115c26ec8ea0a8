// Command llmdo is the host program of llm-do; `llmdo workshop` manages the
// rooms in which LLM workers run their tools.
package main

import (
	"os"

	"github.com/llmdo/workshop/internal/cli"
	_ "github.com/llmdo/workshop/internal/lib/watchprobe" // before the runtime needs a watch
)

func main() { os.Exit(cli.Main(cli.NewLLMDo)) }
