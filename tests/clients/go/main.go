// Runs the list of tests through the Go client: `go run . LIST URL KEY SKILL.zip`.
package main

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"

	"sandlite"
)

type step struct {
	Do     string
	On     string
	Args   map[string]any
	As     string
	Only   []string
	Expect json.RawMessage
	Fails  *struct {
		Status int
		Code   string
	}
}

type arguments map[string]any

func (a arguments) text(name string) string { text, _ := a[name].(string); return text }
func (a arguments) number(name string) int64 {
	value, _ := a[name].(float64)
	return int64(value)
}
func (a arguments) flag(name string) bool { flag, _ := a[name].(bool); return flag }
func (a arguments) files() map[string][]byte {
	files := map[string][]byte{}
	given, _ := a["files"].(map[string]any)
	for name, content := range given {
		files[name] = []byte(content.(string))
	}
	return files
}

// into puts the arguments into the fields of a type with JSON names.
func into[T any](a arguments) T {
	var made T
	raw, _ := json.Marshal(a)
	_ = json.Unmarshal(raw, &made)
	return made
}

var (
	ctx     = context.Background()
	client  *sandlite.Client
	url     string
	zipPath string
	errStop = errors.New("enough")
)

func do(name string, on any, a arguments) (any, error) {
	box, _ := on.(*sandlite.Sandbox)
	job, _ := on.(*sandlite.Job)
	switch name {
	case "health":
		return nil, client.Health(ctx)
	case "whoami":
		return client.WhoAmI(ctx)
	case "whoami_with":
		return sandlite.New(url, a.text("key")).WhoAmI(ctx)
	case "usage":
		return client.Usage(ctx)
	case "create_key":
		return client.CreateKey(ctx, into[sandlite.NewKey](a))
	case "list_keys":
		return client.ListKeys(ctx)
	case "revoke_key":
		return nil, client.RevokeKey(ctx, a.text("id"))
	case "list_audit":
		return client.ListAudit(ctx, 50)
	case "create":
		new := sandlite.NewSandbox{Name: a.text("name"), Files: a.files(), IdempotencyKey: a.text("idempotency_key")}
		return client.CreateSandbox(ctx, new)
	case "get":
		return client.GetSandbox(ctx, a.text("id"))
	case "list_sandboxes":
		return client.ListSandboxes(ctx, sandlite.List{Name: a.text("name")})
	case "delete":
		return nil, box.Delete(ctx)
	case "fork":
		return box.Fork(ctx, a.text("name"), a.text("at"))
	case "export_import":
		var database bytes.Buffer
		if err := box.Export(ctx, &database); err != nil {
			return nil, err
		}
		return client.ImportSandbox(ctx, &database, a.text("name"))
	case "bash", "python":
		options := into[sandlite.RunOptions](a)
		run := map[string]func() (*sandlite.Result, error){
			"bash":   func() (*sandlite.Result, error) { return box.Bash(ctx, a.text("command"), &options) },
			"python": func() (*sandlite.Result, error) { return box.Python(ctx, a.text("code"), &options) },
		}
		result, err := run[name]()
		return withOK(result), err
	case "stream_bash":
		out := map[string][]byte{}
		result, err := box.StreamBash(ctx, a.text("command"), nil, func(piece sandlite.Output) error {
			out[piece.Stream] = append(out[piece.Stream], piece.Data...)
			return nil
		})
		if err != nil {
			return nil, err
		}
		return map[string]any{
			"stdout": string(out["stdout"]), "stderr": string(out["stderr"]),
			"stdout_hex": hex.EncodeToString(out["stdout"]), "exit_code": result.ExitCode,
		}, nil
	case "stream_first":
		var first string
		_, err := box.StreamBash(ctx, a.text("command"), nil, func(piece sandlite.Output) error {
			first = string(piece.Data)
			return errStop
		})
		if errors.Is(err, errStop) {
			err = nil
		}
		return first, err
	case "start_bash":
		return box.StartBash(ctx, a.text("command"), nil)
	case "job_wait":
		return job.Wait(ctx)
	case "job_cancel":
		if err := job.Cancel(ctx); err != nil {
			return nil, err
		}
		_, err := job.Wait(ctx)
		return job, err
	case "jobs":
		return box.Jobs(ctx, sandlite.List{})
	case "read":
		if at := a.text("at"); at != "" {
			return asText(box.ReadAt(ctx, a.text("path"), at))
		}
		return asText(box.Read(ctx, a.text("path")))
	case "read_range":
		return asText(box.ReadRange(ctx, a.text("path"), a.number("start"), a.number("length")))
	case "etag":
		return box.ETag(ctx, a.text("path"))
	case "write":
		if a.text("if_match") != "" || a.flag("create") {
			return box.WriteIf(ctx, a.text("path"), []byte(a.text("text")), a.text("if_match"))
		}
		return box.Write(ctx, a.text("path"), []byte(a.text("text")))
	case "remove":
		return nil, box.Remove(ctx, a.text("path"), a.flag("recursive"))
	case "list":
		return box.List(ctx, a.text("path"), 1, "")
	case "info":
		return box.Info(ctx, a.text("path"))
	case "make_directory":
		return nil, box.MakeDirectory(ctx, a.text("path"))
	case "copy":
		return nil, box.Copy(ctx, a.text("from"), a.text("to"), false)
	case "move":
		return nil, box.Move(ctx, a.text("from"), a.text("to"), false)
	case "write_files":
		return nil, box.WriteFiles(ctx, a.files())
	case "upload_tree":
		return inDirectory(func(directory string) (any, error) {
			for name, content := range a.files() {
				full := filepath.Join(directory, name)
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					return nil, err
				}
				if err := os.WriteFile(full, content, 0o644); err != nil {
					return nil, err
				}
			}
			return nil, box.UploadTree(ctx, directory, a.text("path"))
		})
	case "download_tree":
		return inDirectory(func(directory string) (any, error) {
			if err := box.DownloadTree(ctx, a.text("path"), directory); err != nil {
				return nil, err
			}
			return contents(directory)
		})
	case "kv_get":
		var value any
		_, err := box.KVGet(ctx, a.text("key"), &value)
		return value, err
	case "kv_set":
		return nil, box.KVSet(ctx, a.text("key"), a["value"])
	case "kv_delete":
		return box.KVDelete(ctx, a.text("key"))
	case "kv_keys":
		return box.KVKeys(ctx, a.text("prefix"))
	case "history":
		return box.History(ctx, a)
	case "log":
		return box.Log(ctx, a)
	case "diff":
		return box.Diff(ctx, a.text("from"), a.text("to"))
	case "undo":
		return box.Undo(ctx, int(a.number("runs")))
	case "restore":
		return box.Restore(ctx, a.text("version"))
	case "checkpoint":
		return box.Checkpoint(ctx, a.text("name"), a.text("message"))
	case "checkpoints":
		return box.Checkpoints(ctx)
	case "events":
		return box.Events(ctx, a.number("after"))
	case "follow_until":
		var found *sandlite.Change
		wasAsked := false
		err := box.Follow(ctx, a.number("after"), func(change sandlite.Change) error {
			if !wasAsked {
				wasAsked = true
				if _, err := box.Bash(ctx, a.text("command"), nil); err != nil {
					return err
				}
			}
			if change.Path == a.text("path") {
				found = &change
				return errStop
			}
			return nil
		})
		if errors.Is(err, errStop) {
			err = nil
		}
		return found, err
	case "register_skill":
		return nil, client.RegisterSkill(ctx, zipPath)
	case "list_skills":
		return client.ListSkills(ctx)
	case "get_skill":
		return client.GetSkill(ctx, a.text("name"), "")
	case "delete_skill":
		return nil, client.DeleteSkill(ctx, a.text("name"), a.text("version"))
	case "run":
		return client.Run(ctx, into[sandlite.RunRequest](a))
	case "start":
		return client.Start(ctx, into[sandlite.RunRequest](a))
	case "get_execution":
		return client.GetExecution(ctx, a.text("id"))
	case "get_execution_logs":
		return client.GetExecutionLogs(ctx, a.text("id"))
	case "execution_result":
		return client.ExecutionEvents(ctx, a.text("id"), func(string) error { return nil })
	case "list_executions":
		return client.ListExecutions(ctx, sandlite.List{Skill: a.text("skill"), Status: a.text("status")})
	case "download_files":
		return inDirectory(func(directory string) (any, error) {
			result := a["result"].(*sandlite.RunResult)
			if err := client.DownloadFiles(ctx, result, directory); err != nil {
				return nil, err
			}
			return contents(directory)
		})
	case "upload_file":
		return client.UploadFile(ctx, a.text("name"), []byte(a.text("text")))
	case "update_file":
		return client.UpdateFile(ctx, a.text("id"), a.text("name"), []byte(a.text("text")))
	case "get_file":
		return client.GetFile(ctx, a.text("id"))
	case "list_files":
		return client.ListFiles(ctx, sandlite.FileFilter{})
	case "download_file":
		return asText(client.DownloadFile(ctx, a.text("id")))
	case "delete_file":
		return nil, client.DeleteFile(ctx, a.text("id"))
	case "list_file_versions":
		return client.ListFileVersions(ctx, a.text("id"))
	}
	return nil, fmt.Errorf("the driver has no step `%s`", name)
}

func withOK(result *sandlite.Result) any {
	shown, _ := plain(result).(map[string]any)
	if shown != nil {
		shown["ok"] = result.OK()
	}
	return shown
}

func asText(data []byte, err error) (any, error) { return string(data), err }

func inDirectory(work func(directory string) (any, error)) (any, error) {
	directory, err := os.MkdirTemp("", "sandlite")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(directory)
	return work(directory)
}

func contents(directory string) (any, error) {
	files := map[string]any{}
	err := filepath.WalkDir(directory, func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(name)
		inner, _ := filepath.Rel(directory, name)
		files[filepath.ToSlash(inner)] = string(content)
		return err
	})
	return files, err
}

// plain returns a value as JSON has it.
func plain(value any) any {
	raw, err := json.Marshal(value)
	if err != nil {
		return err.Error()
	}
	var made any
	_ = json.Unmarshal(raw, &made)
	return made
}

func resolve(value any, saved map[string]any) any {
	switch value := value.(type) {
	case string:
		if !strings.HasPrefix(value, "$") {
			return value
		}
		names := strings.Split(value[1:], ".")
		found := saved[names[0]]
		for _, name := range names[1:] {
			fields, _ := plain(found).(map[string]any)
			found = fields[name]
		}
		return found
	case map[string]any:
		made := map[string]any{}
		for name, inner := range value {
			made[name] = resolve(inner, saved)
		}
		return made
	}
	return value
}

func difference(expected, found any, saved map[string]any, place string) string {
	if text, isText := expected.(string); isText {
		expected = plain(resolve(text, saved))
	}
	if wanted, isMap := expected.(map[string]any); isMap {
		if part, has := wanted["$contains"]; has {
			if text, isText := found.(string); isText && strings.Contains(text, part.(string)) {
				return ""
			}
			list, _ := found.([]any)
			for _, item := range list {
				if difference(part, item, saved, place) == "" {
					return ""
				}
			}
			return fmt.Sprintf("%s: %v does not contain %v", place, found, part)
		}
		if least, has := wanted["$above"]; has {
			if value, isNumber := found.(float64); isNumber && value > least.(float64) {
				return ""
			}
			return fmt.Sprintf("%s: %v is not above %v", place, found, least)
		}
		fields, isMap := found.(map[string]any)
		if !isMap {
			return fmt.Sprintf("%s: expected an object, found %v", place, found)
		}
		for name, value := range wanted {
			if problem := difference(value, fields[name], saved, place+"."+name); problem != "" {
				return problem
			}
		}
		return ""
	}
	if wanted, isList := expected.([]any); isList {
		list, _ := found.([]any)
		if len(list) != len(wanted) {
			return fmt.Sprintf("%s: expected %v, found %v", place, expected, found)
		}
		for at, value := range wanted {
			if problem := difference(value, list[at], saved, fmt.Sprintf("%s[%d]", place, at)); problem != "" {
				return problem
			}
		}
		return ""
	}
	if !reflect.DeepEqual(expected, found) {
		return fmt.Sprintf("%s: expected %v, found %v", place, expected, found)
	}
	return ""
}

func try(s step, saved map[string]any) string {
	on := saved[s.On]
	given, _ := resolve(s.Args, saved).(map[string]any)
	found, err := do(s.Do, on, given)
	var problem *sandlite.APIError
	switch {
	case err != nil && s.Fails == nil:
		return "failed: " + err.Error()
	case err == nil && s.Fails != nil:
		return fmt.Sprintf("did not fail, returned %v", plain(found))
	case err != nil && (!errors.As(err, &problem) || problem.StatusCode != s.Fails.Status || s.Fails.Code != "" && problem.ErrorCode != s.Fails.Code):
		return "failed otherwise: " + err.Error()
	}
	if s.As != "" {
		saved[s.As] = found
	}
	if err != nil || s.Expect == nil {
		return ""
	}
	var expected any
	_ = json.Unmarshal(s.Expect, &expected)
	return difference(expected, plain(found), saved, "$")
}

func main() {
	zipPath = os.Args[4]
	url = os.Args[2]
	client = sandlite.New(url, os.Args[3])
	raw, err := os.ReadFile(os.Args[1])
	if err != nil {
		panic(err)
	}
	var list []struct {
		Test  string
		Steps []step
	}
	if err := json.Unmarshal(raw, &list); err != nil {
		panic(err)
	}
	failures := 0
	for _, test := range list {
		saved, problem := map[string]any{}, ""
		for number, s := range test.Steps {
			if s.Only != nil && !strings.Contains(strings.Join(s.Only, " "), "go") {
				continue
			}
			if problem = try(s, saved); problem != "" {
				problem = fmt.Sprintf("step %d (%s): %s", number, s.Do, problem)
				break
			}
		}
		if problem == "" {
			fmt.Println("passed", test.Test)
			continue
		}
		failures++
		fmt.Printf("FAILED %s: %s\n", test.Test, problem)
	}
	if failures > 0 {
		os.Exit(1)
	}
}
