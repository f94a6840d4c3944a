// Package sandlite is the client of a Sandlite server, in one file, with the standard library alone.
//
//	client := sandlite.New("http://127.0.0.1:8080", "sk-…")
//	box, err := client.CreateSandbox(ctx, sandlite.NewSandbox{Name: "demo"})
//	result, err := box.Bash(ctx, "echo hi", nil)
//	fmt.Print(result.Stdout)
//
// Skills have the names and types of Skillbox's client:
//
//	result, err := client.Run(ctx, sandlite.RunRequest{Skill: "word-counter", Input: json.RawMessage(`{"text": "one two"}`)})
//
// A command that fails is a [Result] with its exit code. A request that fails is an [*APIError]. A context that ends closes the
// connection, which kills the command behind it.
package sandlite

import (
	"archive/tar"
	"archive/zip"
	"bufio"
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

const (
	longestRetry = 30 * time.Second
	longestError = 64 << 10
	longestEvent = 16 << 20
)

// APIError is a request that the server refused.
type APIError struct {
	StatusCode int             `json:"-"`
	ErrorCode  string          `json:"error"`
	Message    string          `json:"message"`
	Details    json.RawMessage `json:"details,omitempty"`
}

func (e *APIError) Error() string {
	text := "skillbox: " + strconv.Itoa(e.StatusCode)
	if e.ErrorCode != "" {
		text += " " + e.ErrorCode
	}
	if e.Message != "" {
		text += ": " + e.Message
	}
	return text
}

// Client speaks to a server. Goroutines can share it.
type Client struct {
	base    string
	key     string
	tenant  string
	http    *http.Client
	retries int
}

// Option changes a [Client].
type Option func(*Client)

// WithTenant sends X-Tenant-ID with every request.
func WithTenant(tenant string) Option { return func(c *Client) { c.tenant = tenant } }

// WithHTTPClient replaces the HTTP client.
func WithHTTPClient(client *http.Client) Option { return func(c *Client) { c.http = client } }

// WithRetries sets how often a request is repeated that the server had no room for (429 with Retry-After); defaults to 2.
func WithRetries(retries int) Option { return func(c *Client) { c.retries = retries } }

// New returns a client. The key defaults to the variable SANDLITE_KEY, then SKILLBOX_API_KEY.
func New(baseURL, apiKey string, options ...Option) *Client {
	for _, name := range []string{"SANDLITE_KEY", "SKILLBOX_API_KEY"} {
		if apiKey == "" {
			apiKey = os.Getenv(name)
		}
	}
	c := &Client{base: strings.TrimRight(baseURL, "/"), key: apiKey, http: http.DefaultClient, retries: 2}
	for _, option := range options {
		option(c)
	}
	return c
}

type request struct {
	query   url.Values
	headers map[string]string
	// A body that can be sent again, or one that cannot.
	body   []byte
	stream io.Reader
}

// send returns the response of a request whose status is below 400. The caller closes its body.
func (c *Client) send(ctx context.Context, method, target string, r request) (*http.Response, error) {
	if !strings.Contains(target, "://") {
		target = c.base + target
	}
	if len(r.query) > 0 {
		target += "?" + r.query.Encode()
	}
	for attempt := 0; ; attempt++ {
		body := r.stream
		if r.body != nil {
			body = bytes.NewReader(r.body)
		}
		req, err := http.NewRequestWithContext(ctx, method, target, body)
		if err != nil {
			return nil, fmt.Errorf("sandlite: %s: %w", method, err)
		}
		if c.key != "" {
			req.Header.Set("Authorization", "Bearer "+c.key)
		}
		if c.tenant != "" {
			req.Header.Set("X-Tenant-ID", c.tenant)
		}
		for name, value := range r.headers {
			if value != "" {
				req.Header.Set(name, value)
			}
		}
		answer, err := c.http.Do(req)
		if err != nil {
			return nil, fmt.Errorf("sandlite: %w", err)
		}
		after, noTime := strconv.Atoi(answer.Header.Get("Retry-After"))
		hasNoRoom := answer.StatusCode == http.StatusTooManyRequests || answer.StatusCode == http.StatusServiceUnavailable
		if !hasNoRoom || noTime != nil || r.stream != nil || attempt >= c.retries {
			return checked(answer)
		}
		answer.Body.Close()
		wait := time.Duration(after) * time.Second
		if wait > longestRetry {
			wait = longestRetry
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil, ctx.Err()
		case <-timer.C:
		}
	}
}

func checked(answer *http.Response) (*http.Response, error) {
	if answer.StatusCode < 400 {
		return answer, nil
	}
	defer answer.Body.Close()
	raw, _ := io.ReadAll(io.LimitReader(answer.Body, longestError))
	problem := &APIError{}
	if json.Unmarshal(raw, problem) != nil {
		problem = &APIError{Message: strings.TrimSpace(string(raw))}
	}
	problem.StatusCode = answer.StatusCode
	return nil, problem
}

// json sends a value and decodes the response into out; either can be nil.
func (c *Client) json(ctx context.Context, method, target string, in, out any, r request) error {
	if in != nil {
		body, err := json.Marshal(in)
		if err != nil {
			return fmt.Errorf("sandlite: invalid arguments: %w", err)
		}
		r.body = body
		r.headers = with(r.headers, "Content-Type", "application/json")
	}
	answer, err := c.send(ctx, method, target, r)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if out == nil {
		_, err = io.Copy(io.Discard, answer.Body)
		return err
	}
	decoder := json.NewDecoder(answer.Body)
	if err := decoder.Decode(out); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("sandlite: invalid response: %w", err)
	}
	return nil
}

func with(headers map[string]string, name, value string) map[string]string {
	all := map[string]string{name: value}
	for name, value := range headers {
		all[name] = value
	}
	return all
}

func query(pairs ...string) url.Values {
	values := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			values.Set(pairs[i], pairs[i+1])
		}
	}
	return values
}

func number(value int) string {
	if value == 0 {
		return ""
	}
	return strconv.Itoa(value)
}

func escaped(name string) string {
	segments := strings.Split(strings.TrimLeft(name, "/"), "/")
	for i, segment := range segments {
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/")
}

type sseEvent struct {
	kind, id string
	data     []byte
}

// sse calls each with every server-sent event; an error of each ends the stream.
func sse(body io.ReadCloser, each func(sseEvent) error) error {
	defer body.Close()
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), longestEvent)
	event := sseEvent{kind: "message"}
	var hasData bool
	for lines.Scan() {
		line := lines.Text()
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if hasData {
				if err := each(event); err != nil {
					return err
				}
			}
			event, hasData = sseEvent{kind: "message", id: event.id}, false
		case name == "event":
			event.kind = value
		case name == "id":
			event.id = value
		case name == "data":
			if hasData {
				event.data = append(event.data, '\n')
			}
			event.data, hasData = append(event.data, value...), true
		}
	}
	return lines.Err()
}

// unpack writes files and directories of a tar below a directory. Links are left out; a name that leads out is an error.
func unpack(source io.Reader, directory string) error {
	root, err := filepath.Abs(directory)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(root, 0o755); err != nil {
		return err
	}
	archive := tar.NewReader(source)
	for {
		head, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("sandlite: invalid archive: %w", err)
		}
		name := path.Clean(head.Name)
		if path.IsAbs(name) || name == ".." || strings.HasPrefix(name, "../") || strings.ContainsAny(name, "\\:") {
			return fmt.Errorf("sandlite: refused to unpack `%s`: path traversal", head.Name)
		}
		target := filepath.Join(root, filepath.FromSlash(name))
		switch head.Typeflag {
		case tar.TypeDir:
			if err := inside(root, target); err != nil {
				return err
			}
			err = os.MkdirAll(target, 0o755)
		case tar.TypeReg:
			if err := inside(root, target); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
				return err
			}
			err = writeFrom(target, archive)
		}
		if err != nil {
			return err
		}
	}
}

// inside refuses a target that is reached through a symbolic link.
func inside(root, target string) error {
	for at := target; len(at) > len(root); at = filepath.Dir(at) {
		if found, err := os.Lstat(at); err == nil && found.Mode()&fs.ModeSymlink != 0 {
			return fmt.Errorf("sandlite: refused to unpack `%s`: a symbolic link leads out of the directory", target)
		}
	}
	return nil
}

func writeFrom(target string, source io.Reader) error {
	out, err := os.Create(target)
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, source); err != nil {
		out.Close()
		return err
	}
	return out.Close()
}

// Page is a part of a list; NextCursor is for the next one, if there is more.
type Page[T any] struct {
	Items      []T    `json:"items"`
	NextCursor string `json:"next_cursor"`
}

// List chooses a part of a list.
type List struct {
	Limit  int
	Cursor string
	// Sandboxes: only the one of this name.
	Name string
	// Executions: only those of this skill or with this status.
	Skill, Status string
}

func (l List) query() url.Values {
	return query("limit", number(l.Limit), "cursor", l.Cursor, "name", l.Name, "skill", l.Skill, "status", l.Status)
}

// ---------------------------------------------------------------- the server

// Health returns an error if the server cannot be reached.
func (c *Client) Health(ctx context.Context) error {
	return c.json(ctx, "GET", "/health", nil, nil, request{})
}

// Identity is the tenant, role, id and view of a key.
type Identity struct {
	Tenant string  `json:"tenant"`
	Role   string  `json:"role"`
	Key    string  `json:"key"`
	View   *string `json:"view"`
}

// WhoAmI returns tenant, role, id and view of the key.
func (c *Client) WhoAmI(ctx context.Context) (*Identity, error) {
	found := &Identity{}
	return found, c.json(ctx, "GET", "/v1/whoami", nil, found, request{})
}

// TenantUsage is what a tenant uses, and its limits.
type TenantUsage struct {
	Sandboxes    int64            `json:"sandboxes"`
	Bytes        int64            `json:"bytes"`
	FuelThisHour uint64           `json:"fuel_this_hour"`
	RunsThisHour int64            `json:"runs_this_hour"`
	Hours        []HourUsage      `json:"hours"`
	Limits       map[string]int64 `json:"limits"`
}

// HourUsage is what a tenant used in one hour.
type HourUsage struct {
	At   string `json:"at"`
	Fuel uint64 `json:"fuel"`
	Runs int64  `json:"runs"`
}

// Usage returns what the tenant uses.
func (c *Client) Usage(ctx context.Context) (*TenantUsage, error) {
	found := &TenantUsage{}
	return found, c.json(ctx, "GET", "/v1/usage", nil, found, request{})
}

// NewKey describes a key to create; Expires is a time such as 24h.
type NewKey struct {
	Role    string `json:"role"`
	Name    string `json:"name,omitempty"`
	View    string `json:"view,omitempty"`
	Expires string `json:"expires,omitempty"`
}

// CreatedKey is a key; its text is not shown again.
type CreatedKey struct {
	ID  string `json:"id"`
	Key string `json:"key"`
}

// CreateKey creates a key. Needs the role admin.
func (c *Client) CreateKey(ctx context.Context, key NewKey) (*CreatedKey, error) {
	made := &CreatedKey{}
	return made, c.json(ctx, "POST", "/v1/keys", key, made, request{})
}

// ListKeys lists the tenant's keys. Needs the role admin.
func (c *Client) ListKeys(ctx context.Context) ([]map[string]any, error) {
	var keys []map[string]any
	err := c.json(ctx, "GET", "/v1/keys", nil, &keys, request{})
	return keys, err
}

// RevokeKey revokes a key at once.
func (c *Client) RevokeKey(ctx context.Context, id string) error {
	return c.json(ctx, "DELETE", "/v1/keys/"+url.PathEscape(id), nil, nil, request{})
}

// ListAudit lists the newest rows of the audit log. Needs the role admin.
func (c *Client) ListAudit(ctx context.Context, limit int) ([]map[string]any, error) {
	var rows []map[string]any
	err := c.json(ctx, "GET", "/v1/audit", nil, &rows, request{query: query("limit", number(limit))})
	return rows, err
}

// ---------------------------------------------------------------- sandboxes

// NewSandbox describes a sandbox to create. All fields are optional.
type NewSandbox struct {
	Name   string
	Preset string
	// Files that are there from the start.
	Files map[string][]byte
	// Base is the id of a sandbox below it, Snapshot of one to copy.
	Base, Snapshot string
	// Policy is TOML text.
	Policy     string
	TTLSeconds int
	// IdempotencyKey makes a repeated request return the first answer.
	IdempotencyKey string
}

// Sandbox is a sandbox on the server. Its fields are as of the last request that returned them.
type Sandbox struct {
	ID        string  `json:"id"`
	Name      *string `json:"name"`
	Preset    string  `json:"preset"`
	CreatedAt any     `json:"created_at"`
	UsedAt    any     `json:"used_at"`
	ExpiresAt any     `json:"expires_at"`
	Bytes     int64   `json:"bytes"`

	client *Client
}

func (s *Sandbox) path(rest string) string { return "/v1/sandboxes/" + url.PathEscape(s.ID) + rest }

// CreateSandbox creates a sandbox.
func (c *Client) CreateSandbox(ctx context.Context, new NewSandbox) (*Sandbox, error) {
	files := map[string]any{}
	for name, content := range new.Files {
		files[name] = map[string]string{"base64": base64.StdEncoding.EncodeToString(content)}
	}
	body := map[string]any{}
	for name, value := range map[string]string{
		"name": new.Name, "preset": new.Preset, "base": new.Base, "snapshot": new.Snapshot, "policy": new.Policy,
	} {
		if value != "" {
			body[name] = value
		}
	}
	if len(files) > 0 {
		body["files"] = files
	}
	if new.TTLSeconds > 0 {
		body["ttl_seconds"] = new.TTLSeconds
	}
	box := &Sandbox{client: c}
	headers := map[string]string{"Idempotency-Key": new.IdempotencyKey}
	return box, c.json(ctx, "POST", "/v1/sandboxes", body, box, request{headers: headers})
}

// GetSandbox returns a sandbox by its id.
func (c *Client) GetSandbox(ctx context.Context, id string) (*Sandbox, error) {
	box := &Sandbox{client: c}
	return box, c.json(ctx, "GET", "/v1/sandboxes/"+url.PathEscape(id), nil, box, request{})
}

// ListSandboxes lists sandboxes, a page at a time.
func (c *Client) ListSandboxes(ctx context.Context, which List) (*Page[*Sandbox], error) {
	page := &Page[*Sandbox]{}
	err := c.json(ctx, "GET", "/v1/sandboxes", nil, page, request{query: which.query()})
	for _, box := range page.Items {
		box.client = c
	}
	return page, err
}

// ImportSandbox creates a sandbox from a database file.
func (c *Client) ImportSandbox(ctx context.Context, database io.Reader, name string) (*Sandbox, error) {
	box := &Sandbox{client: c}
	headers := map[string]string{"Content-Type": "application/vnd.sqlite3"}
	return box, c.json(ctx, "POST", "/v1/sandboxes/import", nil, box, request{query: query("name", name), stream: database, headers: headers})
}

// Refresh asks for the sandbox's fields again.
func (s *Sandbox) Refresh(ctx context.Context) error {
	return s.client.json(ctx, "GET", s.path(""), nil, s, request{})
}

// Update changes the fields `name` or `ttl_seconds`.
func (s *Sandbox) Update(ctx context.Context, fields map[string]any) error {
	return s.client.json(ctx, "PATCH", s.path(""), fields, s, request{})
}

// Delete deletes the sandbox.
func (s *Sandbox) Delete(ctx context.Context) error {
	return s.client.json(ctx, "DELETE", s.path(""), nil, nil, request{})
}

// Fork creates an independent copy, of the present state or, if at is not empty, of a version.
func (s *Sandbox) Fork(ctx context.Context, name, at string) (*Sandbox, error) {
	body := map[string]string{}
	if name != "" {
		body["name"] = name
	}
	if at != "" {
		body["at"] = at
	}
	box := &Sandbox{client: s.client}
	return box, s.client.json(ctx, "POST", s.path("/fork"), body, box, request{})
}

// Export writes the sandbox as a database file.
func (s *Sandbox) Export(ctx context.Context, to io.Writer) error {
	answer, err := s.client.send(ctx, "GET", s.path("/export"), request{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	_, err = io.Copy(to, answer.Body)
	return err
}

// Action performs any action of the server by its name; out, which can be nil, takes its data.
func (s *Sandbox) Action(ctx context.Context, name string, arguments, out any) error {
	if arguments == nil {
		arguments = struct{}{}
	}
	return s.client.json(ctx, "POST", s.path("/actions/"+url.PathEscape(name)), arguments, out, request{})
}

// RunOptions are the options of a command.
type RunOptions struct {
	Cwd               string            `json:"cwd,omitempty"`
	Env               map[string]string `json:"env,omitempty"`
	Stdin             *string           `json:"stdin,omitempty"`
	TimeoutMs         int64             `json:"timeout_ms,omitempty"`
	RollbackOnFailure bool              `json:"rollback_on_failure,omitempty"`
	Session           string            `json:"session,omitempty"`
	Seed              *uint64           `json:"seed,omitempty"`
	Record            bool              `json:"record,omitempty"`
	// Echo puts the value of a last expression of Python into Value.
	Echo *bool `json:"echo,omitempty"`
}

// Usage is what a command used.
type Usage struct {
	Fuel         uint64 `json:"fuel"`
	WallMicros   uint64 `json:"wall_us"`
	MemoryPeak   uint64 `json:"memory_peak"`
	Output       uint64 `json:"output"`
	Commands     uint64 `json:"commands"`
	Processes    uint64 `json:"processes"`
	BytesRead    uint64 `json:"bytes_read"`
	BytesWritten uint64 `json:"bytes_written"`
}

// Result is how a command went.
type Result struct {
	Status     string            `json:"status"`
	ExitCode   int               `json:"exit_code"`
	Stdout     string            `json:"stdout"`
	Stderr     string            `json:"stderr"`
	Truncated  bool              `json:"truncated"`
	Limit      map[string]any    `json:"limit"`
	Cancelled  bool              `json:"cancelled"`
	DurationMs int64             `json:"duration_ms"`
	Usage      Usage             `json:"usage"`
	Run        int64             `json:"run"`
	Restarted  bool              `json:"restarted"`
	Notes      []string          `json:"notes"`
	Value      json.RawMessage   `json:"value"`
	Text       *string           `json:"text"`
	Images     []json.RawMessage `json:"images"`
}

// OK reports whether the exit code is 0.
func (r *Result) OK() bool { return r.ExitCode == 0 }

func command(name, text string, options *RunOptions) (map[string]any, error) {
	body := map[string]any{}
	if options != nil {
		raw, err := json.Marshal(options)
		if err != nil {
			return nil, err
		}
		if err := json.Unmarshal(raw, &body); err != nil {
			return nil, err
		}
		if options.Seed != nil {
			body["seed"] = *options.Seed // Not through a float64.
		}
	}
	body[map[string]string{"bash": "command", "python": "code"}[name]] = text
	return body, nil
}

func (s *Sandbox) run(ctx context.Context, name, text string, options *RunOptions) (*Result, error) {
	body, err := command(name, text, options)
	if err != nil {
		return nil, err
	}
	result := &Result{}
	return result, s.Action(ctx, name, body, result)
}

// Bash runs a bash command line; options can be nil.
func (s *Sandbox) Bash(ctx context.Context, command string, options *RunOptions) (*Result, error) {
	return s.run(ctx, "bash", command, options)
}

// Python runs Python code; options can be nil.
func (s *Sandbox) Python(ctx context.Context, code string, options *RunOptions) (*Result, error) {
	return s.run(ctx, "python", code, options)
}

// Output is a piece of what a command printed; Stream is stdout or stderr.
type Output struct {
	Stream string
	Data   []byte
}

// StreamBash runs a bash command line and calls each with its output as it comes. An error of each kills the command.
func (s *Sandbox) StreamBash(ctx context.Context, command string, options *RunOptions, each func(Output) error) (*Result, error) {
	return s.stream(ctx, "bash", command, options, each)
}

// StreamPython does the same for Python code.
func (s *Sandbox) StreamPython(ctx context.Context, code string, options *RunOptions, each func(Output) error) (*Result, error) {
	return s.stream(ctx, "python", code, options, each)
}

func (s *Sandbox) stream(ctx context.Context, name, text string, options *RunOptions, each func(Output) error) (*Result, error) {
	body, err := command(name, text, options)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	headers := map[string]string{"Accept": "text/event-stream", "Content-Type": "application/json"}
	answer, err := s.client.send(ctx, "POST", s.path("/actions/"+name), request{body: raw, headers: headers})
	if err != nil {
		return nil, err
	}
	var result *Result
	err = sse(answer.Body, func(event sseEvent) error {
		switch event.kind {
		case "stdout", "stderr":
			var piece struct {
				Text   string
				Base64 *string
			}
			if err := json.Unmarshal(event.data, &piece); err != nil {
				return err
			}
			data := []byte(piece.Text)
			if piece.Base64 != nil {
				if data, err = base64.StdEncoding.DecodeString(*piece.Base64); err != nil {
					return err
				}
			}
			return each(Output{event.kind, data})
		case "result":
			result = &Result{}
			return json.Unmarshal(event.data, result)
		case "error":
			problem := &APIError{StatusCode: http.StatusOK}
			if err := json.Unmarshal(event.data, problem); err != nil {
				return err
			}
			return problem
		}
		return nil
	})
	if err == nil && result == nil {
		err = errors.New("sandlite: the stream ended before the command")
	}
	return result, err
}

// Job is a command that runs in the background.
type Job struct {
	ID     string    `json:"job"`
	Action string    `json:"action"`
	Status string    `json:"status"`
	Result *Result   `json:"result"`
	Error  *APIError `json:"error"`

	box *Sandbox
}

// StartBash starts a bash command line in the background.
func (s *Sandbox) StartBash(ctx context.Context, command string, options *RunOptions) (*Job, error) {
	return s.start(ctx, "bash", command, options)
}

// StartPython starts Python code in the background.
func (s *Sandbox) StartPython(ctx context.Context, code string, options *RunOptions) (*Job, error) {
	return s.start(ctx, "python", code, options)
}

func (s *Sandbox) start(ctx context.Context, name, text string, options *RunOptions) (*Job, error) {
	body, err := command(name, text, options)
	if err != nil {
		return nil, err
	}
	job := &Job{Action: name, box: s}
	headers := map[string]string{"Prefer": "respond-async"}
	return job, s.client.json(ctx, "POST", s.path("/actions/"+name), body, job, request{headers: headers})
}

// Jobs lists the commands in the background.
func (s *Sandbox) Jobs(ctx context.Context, which List) (*Page[*Job], error) {
	page := &Page[*Job]{}
	err := s.client.json(ctx, "GET", s.path("/jobs"), nil, page, request{query: which.query()})
	for _, job := range page.Items {
		job.box = s
	}
	return page, err
}

// Refresh asks for the status.
func (j *Job) Refresh(ctx context.Context) error {
	fresh := &Job{}
	if err := j.box.client.json(ctx, "GET", j.box.path("/jobs/"+url.PathEscape(j.ID)), nil, fresh, request{}); err != nil {
		return err
	}
	fresh.box = j.box
	*j = *fresh
	return nil
}

// Wait waits until the command has ended and returns its result, or nil if it was cancelled.
func (j *Job) Wait(ctx context.Context) (*Result, error) {
	ticks := time.NewTicker(100 * time.Millisecond)
	defer ticks.Stop()
	for {
		if err := j.Refresh(ctx); err != nil {
			return nil, err
		}
		if j.Status == "failed" && j.Error != nil {
			return nil, j.Error
		}
		if j.Status != "running" {
			return j.Result, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-ticks.C:
		}
	}
}

// Cancel kills the command.
func (j *Job) Cancel(ctx context.Context) error {
	return j.box.client.json(ctx, "DELETE", j.box.path("/jobs/"+url.PathEscape(j.ID)), nil, nil, request{})
}

// ---------------------------------------------------------------- files

func (s *Sandbox) file(name string) string { return s.path("/files/" + escaped(name)) }

func (s *Sandbox) bytes(ctx context.Context, target string, r request) ([]byte, error) {
	answer, err := s.client.send(ctx, "GET", target, r)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// Read reads a file.
func (s *Sandbox) Read(ctx context.Context, name string) ([]byte, error) {
	return s.bytes(ctx, s.file(name), request{})
}

// ReadAt reads a file as it was at a version.
func (s *Sandbox) ReadAt(ctx context.Context, name, version string) ([]byte, error) {
	return s.bytes(ctx, s.file(name), request{query: query("at", version)})
}

// ReadRange reads length bytes from start.
func (s *Sandbox) ReadRange(ctx context.Context, name string, start, length int64) ([]byte, error) {
	return s.bytes(ctx, s.file(name), request{headers: map[string]string{"Range": fmt.Sprintf("bytes=%d-%d", start, start+length-1)}})
}

// Open returns a file's bytes as they come.
func (s *Sandbox) Open(ctx context.Context, name string) (io.ReadCloser, error) {
	answer, err := s.client.send(ctx, "GET", s.file(name), request{})
	if err != nil {
		return nil, err
	}
	return answer.Body, nil
}

// ETag returns a name for the file's content, for WriteIf.
func (s *Sandbox) ETag(ctx context.Context, name string) (string, error) {
	answer, err := s.client.send(ctx, "HEAD", s.file(name), request{})
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	return answer.Header.Get("ETag"), nil
}

// Write writes a whole file and returns its new etag.
func (s *Sandbox) Write(ctx context.Context, name string, content []byte) (string, error) {
	return s.put(ctx, name, content, nil)
}

// WriteIf writes a whole file if it still has an etag; "" is only if there is no such file.
func (s *Sandbox) WriteIf(ctx context.Context, name string, content []byte, etag string) (string, error) {
	if etag == "" {
		return s.put(ctx, name, content, map[string]string{"If-None-Match": "*"})
	}
	return s.put(ctx, name, content, map[string]string{"If-Match": etag})
}

func (s *Sandbox) put(ctx context.Context, name string, content []byte, headers map[string]string) (string, error) {
	if content == nil {
		content = []byte{}
	}
	headers = with(headers, "Content-Type", "application/octet-stream")
	answer, err := s.client.send(ctx, "PUT", s.file(name), request{body: content, headers: headers})
	if err != nil {
		return "", err
	}
	answer.Body.Close()
	return answer.Header.Get("ETag"), nil
}

// Remove removes a file, or a directory with everything below it if recursive is set.
func (s *Sandbox) Remove(ctx context.Context, name string, recursive bool) error {
	r := request{}
	if recursive {
		r.query = query("recursive", "true")
	}
	return s.client.json(ctx, "DELETE", s.file(name), nil, nil, r)
}

// Entry is a file in a list.
type Entry struct {
	Path   string `json:"path"`
	Kind   string `json:"kind"`
	Size   int64  `json:"size"`
	Target string `json:"target"`
}

// List lists a directory down to a depth; at, if it is not empty, is a version.
func (s *Sandbox) List(ctx context.Context, name string, depth int, at string) ([]Entry, error) {
	arguments := map[string]any{"path": name, "depth": depth, "hidden": true}
	if at != "" {
		arguments["at"] = at
	}
	var listed struct{ Entries []Entry }
	err := s.Action(ctx, "list_files", arguments, &listed)
	return listed.Entries, err
}

// FileInfo is the metadata of a path.
type FileInfo struct {
	Path     string  `json:"path"`
	Type     string  `json:"type"`
	Size     int64   `json:"size"`
	Mode     string  `json:"mode"`
	Modified int64   `json:"modified"`
	Target   *string `json:"target"`
}

// Info returns kind, size, permissions and time of a path.
func (s *Sandbox) Info(ctx context.Context, name string) (*FileInfo, error) {
	found := &FileInfo{}
	return found, s.Action(ctx, "file_info", map[string]any{"path": name}, found)
}

// MakeDirectory creates a directory and those above it.
func (s *Sandbox) MakeDirectory(ctx context.Context, name string) error {
	return s.Action(ctx, "make_directory", map[string]any{"path": name}, nil)
}

// Move moves or renames a file or a directory.
func (s *Sandbox) Move(ctx context.Context, from, to string, overwrite bool) error {
	return s.Action(ctx, "move_file", map[string]any{"from": from, "to": to, "overwrite": overwrite}, nil)
}

// Copy copies a file, or a directory with everything below it.
func (s *Sandbox) Copy(ctx context.Context, from, to string, recursive bool) error {
	return s.Action(ctx, "copy_files", map[string]any{"from": from, "to": to, "recursive": recursive}, nil)
}

// WriteFiles writes many files, all or none.
func (s *Sandbox) WriteFiles(ctx context.Context, files map[string][]byte) error {
	rows := []map[string]string{}
	for name, content := range files {
		rows = append(rows, map[string]string{"path": name, "content": base64.StdEncoding.EncodeToString(content), "encoding": "base64"})
	}
	return s.Action(ctx, "write_files", map[string]any{"files": rows}, nil)
}

// DownloadTree copies a tree of the sandbox into a directory of this machine. Links are left out; a name that leads out is an error.
func (s *Sandbox) DownloadTree(ctx context.Context, name, directory string) error {
	answer, err := s.client.send(ctx, "GET", s.path("/tree/"+escaped(name)), request{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	return unpack(answer.Body, directory)
}

// UploadTree copies a directory of this machine into the sandbox, in one step.
func (s *Sandbox) UploadTree(ctx context.Context, directory, name string) error {
	var packed bytes.Buffer
	archive := tar.NewWriter(&packed)
	err := walk(directory, func(inner, full string, info fs.FileInfo) error {
		head, err := tar.FileInfoHeader(info, "")
		if err != nil {
			return err
		}
		head.Name, head.Format = inner, tar.FormatPAX
		if err := archive.WriteHeader(head); err != nil || info.IsDir() {
			return err
		}
		return copyFile(archive, full)
	})
	if err == nil {
		err = archive.Close()
	}
	if err != nil {
		return err
	}
	headers := map[string]string{"Content-Type": "application/x-tar"}
	return s.client.json(ctx, "PUT", s.path("/tree/"+escaped(name)), nil, nil, request{body: packed.Bytes(), headers: headers})
}

// walk calls each with the files and directories below a directory, in order.
func walk(directory string, each func(inner, full string, info fs.FileInfo) error) error {
	return filepath.Walk(directory, func(full string, info fs.FileInfo, err error) error {
		if err != nil || full == directory || !(info.IsDir() || info.Mode().IsRegular()) {
			return err
		}
		inner, err := filepath.Rel(directory, full)
		if err != nil {
			return err
		}
		return each(filepath.ToSlash(inner), full, info)
	})
}

func copyFile(to io.Writer, name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	_, err = io.Copy(to, file)
	return err
}

// ---------------------------------------------------------------- keys and values, history, versions

// KVGet decodes the value of a key into out and returns whether it exists.
func (s *Sandbox) KVGet(ctx context.Context, key string, out any) (bool, error) {
	var text []byte
	arguments := map[string]any{"key": key}
	for {
		var found struct {
			Found      bool
			Value      json.RawMessage
			Part       *string
			NextOffset *int64 `json:"next_offset"`
		}
		if err := s.Action(ctx, "kv_get", arguments, &found); err != nil || !found.Found {
			return false, err
		}
		if found.Part == nil {
			return true, json.Unmarshal(found.Value, out)
		}
		text = append(text, *found.Part...)
		if found.NextOffset == nil {
			return true, json.Unmarshal(text, out)
		}
		arguments["offset"] = *found.NextOffset
	}
}

// KVSet keeps a JSON value under a key.
func (s *Sandbox) KVSet(ctx context.Context, key string, value any) error {
	return s.Action(ctx, "kv_set", map[string]any{"key": key, "value": value}, nil)
}

// KVDelete removes a key and returns whether it existed.
func (s *Sandbox) KVDelete(ctx context.Context, key string) (bool, error) {
	var done struct{ Found bool }
	err := s.Action(ctx, "kv_delete", map[string]any{"key": key}, &done)
	return done.Found, err
}

// KVKeys lists the keys with a prefix.
func (s *Sandbox) KVKeys(ctx context.Context, prefix string) ([]string, error) {
	names := []string{}
	for {
		arguments := map[string]any{"prefix": prefix}
		if len(names) > 0 {
			arguments["after"] = names[len(names)-1]
		}
		var page struct {
			Keys      []string
			Truncated bool
		}
		if err := s.Action(ctx, "kv_keys", arguments, &page); err != nil {
			return nil, err
		}
		names = append(names, page.Keys...)
		if !page.Truncated || len(page.Keys) == 0 {
			return names, nil
		}
	}
}

// HistoryRow is one thing that was done.
type HistoryRow struct {
	Run        int64             `json:"run"`
	Name       string            `json:"name"`
	Command    string            `json:"command"`
	Status     string            `json:"status"`
	ExitCode   *int              `json:"exit_code"`
	StartedMs  int64             `json:"started_ms"`
	DurationMs *int64            `json:"duration_ms"`
	Changes    []json.RawMessage `json:"changes"`
	Stdout     *string           `json:"stdout"`
	Stderr     *string           `json:"stderr"`
}

// History lists what was done, newest first; which can have limit, before, name, grep or run, and can be nil.
func (s *Sandbox) History(ctx context.Context, which map[string]any) ([]HistoryRow, error) {
	var listed struct{ Runs []HistoryRow }
	err := s.Action(ctx, "history", orEmpty(which), &listed)
	return listed.Runs, err
}

// VersionRow is a version of the sandbox.
type VersionRow struct {
	Version     int64    `json:"version"`
	Run         *int64   `json:"run"`
	MadeBy      string   `json:"made_by"`
	Command     string   `json:"command"`
	ExitCode    *int     `json:"exit_code"`
	TimeMs      int64    `json:"time_ms"`
	Changed     []string `json:"changed"`
	Changes     int      `json:"changes"`
	Checkpoints []string `json:"checkpoints"`
	Digest      *string  `json:"digest"`
}

// Log lists the versions, newest first; which can have path, limit or before, and can be nil.
func (s *Sandbox) Log(ctx context.Context, which map[string]any) ([]VersionRow, error) {
	var listed struct{ Versions []VersionRow }
	err := s.Action(ctx, "log", orEmpty(which), &listed)
	return listed.Versions, err
}

func orEmpty(which map[string]any) map[string]any {
	if which == nil {
		return map[string]any{}
	}
	return which
}

// Differences are what differs between two versions.
type Differences struct {
	Files []struct {
		Path        string `json:"path"`
		Kind        string `json:"kind"`
		IsDirectory bool   `json:"is_directory"`
		OldSize     int64  `json:"old_size"`
		NewSize     int64  `json:"new_size"`
	} `json:"files"`
	Total         int               `json:"total"`
	Values        []ValueDifference `json:"values"`
	ValuesUnknown bool              `json:"values_unknown"`
	Patch         string            `json:"patch"`
	Truncated     bool              `json:"truncated"`
}

// ValueDifference is a key or session that differs between two versions.
type ValueDifference struct {
	Value string `json:"value"`
	Name  string `json:"name"`
	Kind  string `json:"kind"`
}

func (s *Sandbox) differences(ctx context.Context, action string, arguments map[string]any) (*Differences, error) {
	found := &Differences{}
	return found, s.Action(ctx, action, arguments, found)
}

// Diff compares two versions; an empty to is the present state.
func (s *Sandbox) Diff(ctx context.Context, from, to string, paths ...string) (*Differences, error) {
	arguments := map[string]any{"from": from}
	if to != "" {
		arguments["to"] = to
	}
	if len(paths) > 0 {
		arguments["paths"] = paths
	}
	return s.differences(ctx, "diff", arguments)
}

// Undo takes the last changing runs back.
func (s *Sandbox) Undo(ctx context.Context, runs int) (*Differences, error) {
	return s.differences(ctx, "undo", map[string]any{"runs": runs})
}

// Restore brings everything, or some paths, back to a version.
func (s *Sandbox) Restore(ctx context.Context, version string, paths ...string) (*Differences, error) {
	if paths == nil {
		paths = []string{}
	}
	return s.differences(ctx, "restore", map[string]any{"version": version, "paths": paths})
}

// Checkpoint is a name for a version.
type Checkpoint struct {
	Name    string  `json:"name"`
	Version int64   `json:"version"`
	Message *string `json:"message"`
	TimeMs  int64   `json:"time_ms"`
}

// Checkpoint names the present version; message can be empty.
func (s *Sandbox) Checkpoint(ctx context.Context, name, message string) (*Checkpoint, error) {
	arguments := map[string]any{"name": name}
	if message != "" {
		arguments["message"] = message
	}
	made := &Checkpoint{}
	return made, s.Action(ctx, "checkpoint", arguments, made)
}

// Checkpoints lists the checkpoints.
func (s *Sandbox) Checkpoints(ctx context.Context) ([]Checkpoint, error) {
	var listed struct{ Checkpoints []Checkpoint }
	err := s.Action(ctx, "checkpoints", nil, &listed)
	return listed.Checkpoints, err
}

// Change is one change of one version.
type Change struct {
	Version int64   `json:"version"`
	Run     *int64  `json:"run"`
	Time    int64   `json:"time"`
	Path    string  `json:"path"`
	Kind    string  `json:"kind"`
	From    *string `json:"from"`
	Type    *string `json:"type"`
	Size    int64   `json:"size"`
	Hash    *string `json:"hash"`
}

// Events returns the committed changes after a version.
func (s *Sandbox) Events(ctx context.Context, after int64) ([]Change, error) {
	var page struct{ Events []Change }
	err := s.Action(ctx, "events", map[string]any{"after": after}, &page)
	return page.Events, err
}

// Follow calls each with the changes after a version as they come, until the context or each ends it.
func (s *Sandbox) Follow(ctx context.Context, after int64, each func(Change) error) error {
	r := request{query: query("after", strconv.FormatInt(after, 10)), headers: map[string]string{"Accept": "text/event-stream"}}
	answer, err := s.client.send(ctx, "GET", s.path("/events"), r)
	if err != nil {
		return err
	}
	return sse(answer.Body, func(event sseEvent) error {
		if event.kind != "change" {
			return nil
		}
		var change Change
		if err := json.Unmarshal(event.data, &change); err != nil {
			return err
		}
		return each(change)
	})
}

// ---------------------------------------------------------------- skills, as Skillbox's client has them

// RunRequest describes a run of a skill. Skill is the only required field.
type RunRequest struct {
	Skill      string            `json:"skill"`
	Version    string            `json:"version,omitempty"`
	Input      json.RawMessage   `json:"input,omitempty"`
	Env        map[string]string `json:"env,omitempty"`
	InputFiles []string          `json:"input_files,omitempty"`
	SessionID  string            `json:"session_id,omitempty"`
	// IdempotencyKey makes a repeated request return the first answer.
	IdempotencyKey string `json:"-"`
}

// RunResult is how the run of a skill went.
type RunResult struct {
	ExecutionID string          `json:"execution_id"`
	Status      string          `json:"status"`
	Output      json.RawMessage `json:"output,omitempty"`
	FilesURL    string          `json:"files_url"`
	FilesList   []string        `json:"files_list"`
	Logs        string          `json:"logs"`
	DurationMs  int64           `json:"duration_ms"`
	Error       string          `json:"error"`
}

// HasFiles reports whether the run left files that [Client.DownloadFiles] can fetch.
func (r *RunResult) HasFiles() bool { return r.FilesURL != "" }

// Execution is a run of a skill with what it was given.
type Execution struct {
	RunResult
	SkillName    string          `json:"skill_name"`
	SkillVersion string          `json:"skill_version"`
	TenantID     string          `json:"tenant_id"`
	Input        json.RawMessage `json:"input,omitempty"`
	CreatedAt    string          `json:"created_at"`
	FinishedAt   *string         `json:"finished_at"`
}

// Skill is a skill in a list.
type Skill struct {
	Name        string `json:"name"`
	Version     string `json:"version"`
	Description string `json:"description"`
	Lang        string `json:"lang,omitempty"`
	Mode        string `json:"mode,omitempty"`
	Status      string `json:"status,omitempty"`
}

// SkillDetail is a skill with its instructions.
type SkillDetail struct {
	Skill
	Image        string            `json:"image,omitempty"`
	Instructions string            `json:"instructions,omitempty"`
	Timeout      string            `json:"timeout,omitempty"`
	Resources    map[string]string `json:"resources,omitempty"`
	InputSchema  json.RawMessage   `json:"input_schema,omitempty"`
}

// Run runs a skill and waits for its result.
func (c *Client) Run(ctx context.Context, run RunRequest) (*RunResult, error) {
	result := &RunResult{}
	headers := map[string]string{"Idempotency-Key": run.IdempotencyKey}
	return result, c.json(ctx, "POST", "/v1/executions", run, result, request{headers: headers})
}

// Start starts a skill in the background and returns the id of the execution.
func (c *Client) Start(ctx context.Context, run RunRequest) (string, error) {
	body := struct {
		RunRequest
		Async bool `json:"async"`
	}{run, true}
	result := &RunResult{}
	err := c.json(ctx, "POST", "/v1/executions", body, result, request{})
	return result.ExecutionID, err
}

func execution(id string) string { return "/v1/executions/" + url.PathEscape(id) }

// GetExecution returns an execution by its id.
func (c *Client) GetExecution(ctx context.Context, id string) (*RunResult, error) {
	result := &RunResult{}
	return result, c.json(ctx, "GET", execution(id), nil, result, request{})
}

// ListExecutions lists executions, newest first.
func (c *Client) ListExecutions(ctx context.Context, which List) (*Page[Execution], error) {
	page := &Page[Execution]{}
	return page, c.json(ctx, "GET", "/v1/executions", nil, page, request{query: which.query()})
}

// CancelExecution cancels an execution.
func (c *Client) CancelExecution(ctx context.Context, id string) error {
	return c.json(ctx, "DELETE", execution(id), nil, nil, request{})
}

// ExecutionEvents calls each with the logs of an execution as they come, and returns its result.
func (c *Client) ExecutionEvents(ctx context.Context, id string, each func(text string) error) (*RunResult, error) {
	headers := map[string]string{"Accept": "text/event-stream"}
	answer, err := c.send(ctx, "GET", execution(id)+"/events", request{headers: headers})
	if err != nil {
		return nil, err
	}
	var result *RunResult
	err = sse(answer.Body, func(event sseEvent) error {
		switch event.kind {
		case "log":
			var piece struct{ Text string }
			if err := json.Unmarshal(event.data, &piece); err != nil {
				return err
			}
			return each(piece.Text)
		case "result":
			result = &RunResult{}
			return json.Unmarshal(event.data, result)
		}
		return nil
	})
	return result, err
}

// GetExecutionLogs returns what the skill printed.
func (c *Client) GetExecutionLogs(ctx context.Context, id string) (string, error) {
	answer, err := c.send(ctx, "GET", execution(id)+"/logs", request{})
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	raw, err := io.ReadAll(answer.Body)
	return string(raw), err
}

// RegisterSkill publishes a skill: a zip file, or a directory with a SKILL.md.
func (c *Client) RegisterSkill(ctx context.Context, name string) error {
	info, err := os.Stat(name)
	if err != nil {
		return err
	}
	var packed []byte
	if info.IsDir() {
		var buffer bytes.Buffer
		archive := zip.NewWriter(&buffer)
		err := walk(name, func(inner, full string, info fs.FileInfo) error {
			if info.IsDir() {
				return nil
			}
			to, err := archive.Create(inner)
			if err != nil {
				return err
			}
			return copyFile(to, full)
		})
		if err == nil {
			err = archive.Close()
		}
		if err != nil {
			return err
		}
		packed = buffer.Bytes()
	} else if packed, err = os.ReadFile(name); err != nil {
		return err
	}
	headers := map[string]string{"Content-Type": "application/zip"}
	return c.json(ctx, "POST", "/v1/skills", nil, nil, request{body: packed, headers: headers})
}

// ListSkills lists the skills.
func (c *Client) ListSkills(ctx context.Context) ([]Skill, error) {
	var skills []Skill
	err := c.json(ctx, "GET", "/v1/skills", nil, &skills, request{})
	return skills, err
}

// GetSkill returns a skill with its instructions; an empty version is the latest.
func (c *Client) GetSkill(ctx context.Context, name, version string) (*SkillDetail, error) {
	if version == "" {
		version = "latest"
	}
	skill := &SkillDetail{}
	return skill, c.json(ctx, "GET", "/v1/skills/"+url.PathEscape(name)+"/"+url.PathEscape(version), nil, skill, request{})
}

// DeleteSkill deletes a version of a skill.
func (c *Client) DeleteSkill(ctx context.Context, name, version string) error {
	return c.json(ctx, "DELETE", "/v1/skills/"+url.PathEscape(name)+"/"+url.PathEscape(version), nil, nil, request{})
}

// DownloadFiles unpacks the files of an execution below a directory. The address is signed, so the key is not sent.
func (c *Client) DownloadFiles(ctx context.Context, result *RunResult, directory string) error {
	if !result.HasFiles() {
		return nil
	}
	plain := &Client{http: c.http}
	answer, err := plain.send(ctx, "GET", result.FilesURL, request{})
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	unpacked, err := gzip.NewReader(answer.Body)
	if err != nil {
		return fmt.Errorf("sandlite: invalid archive: %w", err)
	}
	return unpack(unpacked, directory)
}

// ---------------------------------------------------------------- stored files

// StoredFile is a file that skills can have as input.
type StoredFile struct {
	ID          string  `json:"id"`
	TenantID    string  `json:"tenant_id"`
	SessionID   *string `json:"session_id"`
	ExecutionID *string `json:"execution_id"`
	Name        string  `json:"name"`
	ContentType string  `json:"content_type"`
	SizeBytes   int64   `json:"size_bytes"`
	Version     int     `json:"version"`
	ParentID    *string `json:"parent_id"`
	CreatedAt   string  `json:"created_at"`
	UpdatedAt   string  `json:"updated_at"`
}

// FileFilter chooses stored files.
type FileFilter struct {
	SessionID, ExecutionID string
	Limit, Offset          int
}

func (c *Client) form(ctx context.Context, method, target, name string, content []byte) (*StoredFile, error) {
	var body bytes.Buffer
	writer := multipart.NewWriter(&body)
	part, err := writer.CreateFormFile("file", name)
	if err != nil {
		return nil, err
	}
	if _, err := part.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	stored := &StoredFile{}
	headers := map[string]string{"Content-Type": writer.FormDataContentType()}
	return stored, c.json(ctx, method, target, nil, stored, request{body: body.Bytes(), headers: headers})
}

func stored(id string) string { return "/v1/files/" + url.PathEscape(id) }

// UploadFile stores a file.
func (c *Client) UploadFile(ctx context.Context, name string, content []byte) (*StoredFile, error) {
	return c.form(ctx, "POST", "/v1/files", name, content)
}

// UpdateFile stores the next version of a file, which gets a new id.
func (c *Client) UpdateFile(ctx context.Context, id, name string, content []byte) (*StoredFile, error) {
	return c.form(ctx, "PUT", stored(id), name, content)
}

// ListFiles lists the stored files.
func (c *Client) ListFiles(ctx context.Context, which FileFilter) ([]StoredFile, error) {
	var files []StoredFile
	asked := query("session_id", which.SessionID, "execution_id", which.ExecutionID, "limit", number(which.Limit), "offset", number(which.Offset))
	err := c.json(ctx, "GET", "/v1/files", nil, &files, request{query: asked})
	return files, err
}

// GetFile returns a stored file's metadata.
func (c *Client) GetFile(ctx context.Context, id string) (*StoredFile, error) {
	found := &StoredFile{}
	return found, c.json(ctx, "GET", stored(id), nil, found, request{})
}

// DownloadFile returns a stored file's bytes.
func (c *Client) DownloadFile(ctx context.Context, id string) ([]byte, error) {
	answer, err := c.send(ctx, "GET", stored(id)+"/download", request{})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	return io.ReadAll(answer.Body)
}

// DeleteFile deletes a stored file.
func (c *Client) DeleteFile(ctx context.Context, id string) error {
	return c.json(ctx, "DELETE", stored(id), nil, nil, request{})
}

// ListFileVersions lists the versions of a stored file, newest first.
func (c *Client) ListFileVersions(ctx context.Context, id string) ([]StoredFile, error) {
	var files []StoredFile
	err := c.json(ctx, "GET", stored(id)+"/versions", nil, &files, request{})
	return files, err
}
