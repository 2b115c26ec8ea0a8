package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// open are the paths that need no key (server-http.cpp, get_public_endpoints).
var open = []string{"/health", "/v1/health", "/models", "/v1/models", "/"}

func (s *server) handler() http.Handler {
	mux := http.NewServeMux()
	for _, prefix := range []string{"", "/v1"} {
		mux.HandleFunc("GET "+prefix+"/health", func(w http.ResponseWriter, _ *http.Request) {
			if s.slow {
				refuse(w, 503, "unavailable_error", "Loading model")
				return
			}
			answer(w, 200, map[string]any{"status": "ok"})
		})
		mux.HandleFunc("GET "+prefix+"/models", s.models)
		mux.HandleFunc("POST "+prefix+"/chat/completions", s.chat)
	}
	mux.HandleFunc("GET /props", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, 200, map[string]any{"default_generation_settings": map[string]any{"n_ctx": s.context}, "total_slots": 1, "model_path": s.model})
	})
	mux.HandleFunc("GET /slots", func(w http.ResponseWriter, _ *http.Request) {
		if !s.slots {
			refuse(w, 501, "not_supported_error", "This server does not support slots endpoint. Start it with `--slots`")
			return
		}
		answer(w, 200, []any{map[string]any{"id": 0, "n_ctx": s.context, "is_processing": false}})
	})
	hostile(mux)
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) { refuse(w, 404, "not_found_error", "File Not Found") })
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Server", "llama.cpp")
		s.cors(w, r.Header.Get("Origin"))
		switch {
		case r.Method == http.MethodOptions:
			w.Header().Set("Access-Control-Allow-Methods", "GET, POST, DELETE, OPTIONS")
			w.Header().Set("Access-Control-Allow-Headers", "*")
			w.Header().Set("Content-Type", "text/html")
		case !s.mayAsk(r):
			refuse(w, 401, "authentication_error", "Invalid API Key")
		default:
			mux.ServeHTTP(w, r)
		}
	})
}

var local = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^https?://(localhost|127\.0\.0\.1|\[::1\])(:[0-9]+)?$`)
})

// cors: what is said of an origin. `localhost` names those of this machine.
func (s *server) cors(w http.ResponseWriter, origin string) {
	allowed := s.origins
	if allowed == "localhost" {
		if !local().MatchString(origin) {
			return
		}
		allowed = origin
	}
	w.Header().Set("Access-Control-Allow-Origin", allowed)
}

func (s *server) mayAsk(r *http.Request) bool {
	if len(s.keys) == 0 || slices.Contains(open, r.URL.Path) {
		return true
	}
	key := or(r.Header.Get("Authorization"), r.Header.Get("X-Api-Key"))
	return slices.Contains(s.keys, strings.TrimPrefix(key, "Bearer "))
}

func (s *server) models(w http.ResponseWriter, _ *http.Request) {
	answer(w, 200, map[string]any{"object": "list", "data": []any{map[string]any{
		"id": s.alias, "object": "model", "owned_by": "llamacpp", "created": 1, "meta": map[string]any{"n_ctx_train": s.context},
	}}})
}

// chat answers with the words of the last message.
func (s *server) chat(w http.ResponseWriter, r *http.Request) {
	var ask struct {
		Stream        bool
		StreamOptions struct {
			IncludeUsage bool `json:"include_usage"`
		} `json:"stream_options"`
		Messages []struct{ Content any }
	}
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 64<<20)).Decode(&ask); err != nil {
		refuse(w, 400, "invalid_request_error", err.Error())
		return
	}
	if len(ask.Messages) == 0 {
		refuse(w, 400, "invalid_request_error", "'messages' is required")
		return
	}
	words := strings.Fields(fmt.Sprint("You said: ", ask.Messages[len(ask.Messages)-1].Content))
	usage := map[string]any{"prompt_tokens": len(words) - 2, "completion_tokens": len(words), "total_tokens": 2*len(words) - 2}
	reply := func(object string, usage, choice map[string]any) map[string]any {
		all := map[string]any{"id": "chatcmpl-stub", "object": object, "created": 1, "model": s.alias, "choices": []any{}}
		if choice != nil {
			choice["index"] = 0
			all["choices"] = []any{choice}
		}
		if usage != nil {
			all["usage"] = usage
		}
		return all
	}
	if !ask.Stream {
		message := map[string]any{"role": "assistant", "content": strings.Join(words, " ")}
		answer(w, 200, reply("chat.completion", usage, map[string]any{"message": message, "finish_reason": "stop"}))
		return
	}
	const chunk = "chat.completion.chunk"
	w.Header().Set("Content-Type", "text/event-stream")
	say := func(v any) {
		b, _ := json.Marshal(v)
		fmt.Fprintf(w, "data: %s\n\n", b)
		_ = http.NewResponseController(w).Flush()
	}
	say(reply(chunk, nil, map[string]any{"delta": map[string]any{"role": "assistant", "content": nil}, "finish_reason": nil}))
	for i, word := range words {
		if i > 0 {
			word = " " + word
		}
		say(reply(chunk, nil, map[string]any{"delta": map[string]any{"content": word}, "finish_reason": nil}))
	}
	say(reply(chunk, nil, map[string]any{"delta": map[string]any{}, "finish_reason": "stop"}))
	if ask.StreamOptions.IncludeUsage {
		say(reply(chunk, usage, nil))
	}
	fmt.Fprint(w, "data: [DONE]\n\n")
}

func answer(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, status int, kind, message string) {
	answer(w, status, map[string]any{"error": map[string]any{"message": message, "type": kind, "code": status}})
}
