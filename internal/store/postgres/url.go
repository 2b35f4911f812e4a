package postgres

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"agentd/fault"
)

// target is a database and how it is connected to.
type target struct {
	pool   *pgxpool.Config
	schema string
	// name is for people; it has no password.
	name   string
	secret string
	// lock is the second half of the keys of advisory locks: the schema's.
	lock int32
}

// parse reads a URL. Its errors do not repeat it.
func parse(text string, o *Options) (*target, error) {
	bad := func(err error) error {
		return &fault.Error{Op: "postgres.Open", Kind: fault.Invalid, Field: "store", Err: err,
			Hint: "Write it as postgres://USER@HOST:PORT/DATABASE; the password may be in PGPASSWORD or a passfile."}
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, bad(errors.New("the store's URL can not be read")) // url's own error repeats the password
	}
	t := &target{}
	t.secret, _ = u.User.Password()
	if t.secret == "" {
		t.secret = u.Query().Get("password")
	}
	cfg, err := pgxpool.ParseConfig(text)
	if err != nil {
		return nil, bad(errors.New(t.scrub(reason(err))))
	}
	if cfg.ConnConfig.Password != "" {
		t.secret = cfg.ConnConfig.Password
	}
	params := cfg.ConnConfig.RuntimeParams
	t.schema = "agentd"
	if p := params["search_path"]; p != "" {
		t.schema = strings.Trim(strings.TrimSpace(strings.SplitN(p, ",", 2)[0]), `"`)
	}
	params["search_path"] = pgx.Identifier{t.schema}.Sanitize()
	t.lock = int32(crc32.ChecksumIEEE([]byte(t.schema))) //nolint:gosec // any 32 bits do
	for k, v := range map[string]string{
		"application_name":  "agentd",
		"client_encoding":   "UTF8",
		"statement_timeout": strconv.FormatInt(o.StatementTimeout.Milliseconds(), 10),
		// A client that is cut off in the middle of a change holds its rows for six seconds at most: as long as a lease.
		"tcp_keepalives_idle": "3", "tcp_keepalives_interval": "1", "tcp_keepalives_count": "3", "tcp_user_timeout": "6000",
		"idle_in_transaction_session_timeout": "60000",
	} {
		if params[k] == "" {
			params[k] = v
		}
	}
	if cfg.ConnConfig.ConnectTimeout == 0 || cfg.ConnConfig.ConnectTimeout > o.RetryFor {
		cfg.ConnConfig.ConnectTimeout = min(o.RetryFor, 5*time.Second)
	}
	if u.Query().Get("pool_max_conns") == "" {
		cfg.MaxConns = int32(min(o.Connections, 10_000)) //nolint:gosec // bounded here
	}
	cfg.AfterConnect = durable
	cfg.ConnConfig.DialFunc = dial
	t.pool = cfg
	c := cfg.ConnConfig
	where := net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))
	if strings.HasPrefix(c.Host, "/") {
		where = c.Host
	}
	t.name = fmt.Sprintf("postgres://%s@%s/%s", c.User, where, c.Database)
	if t.schema != "agentd" {
		t.name += "?search_path=" + t.schema
	}
	return t, nil
}

// Redacted is a URL for people: without its password. What is no URL at all comes back
// as a word that says so.
func Redacted(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return "postgres://(unreadable)"
	}
	if _, has := u.User.Password(); has {
		u.User = url.User(u.User.Username())
	}
	q := u.Query()
	if q.Has("password") || q.Has("sslpassword") {
		q.Del("password")
		q.Del("sslpassword")
		u.RawQuery = q.Encode()
	}
	return u.String()
}

// HasPassword is whether a URL holds one.
func HasPassword(text string) bool {
	u, err := url.Parse(text)
	if err != nil {
		return strings.Contains(text, "@")
	}
	_, has := u.User.Password()
	return has || u.Query().Has("password") || u.Query().Has("sslpassword")
}

// reason is why a URL can not be used, without the URL.
func reason(err error) string {
	var p *pgconn.ParseConfigError
	if errors.As(err, &p) {
		text := p.Error()
		if i := strings.LastIndex(text, "`: "); i >= 0 {
			return text[i+3:]
		}
	}
	return err.Error()
}

// scrub takes the password out of a text.
func (t *target) scrub(text string) string {
	if t.secret == "" {
		return text
	}
	text = strings.ReplaceAll(text, url.QueryEscape(t.secret), "***")
	text = strings.ReplaceAll(text, url.PathEscape(t.secret), "***")
	return strings.ReplaceAll(text, t.secret, "***")
}

// durable has a new connection wait for the disk, whatever the server's default is.
func durable(ctx context.Context, c *pgx.Conn) error {
	_, err := c.Exec(ctx, "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'")
	return err
}

// connect opens a connection beside the pool, without a timeout of statements.
func (t *target) connect(ctx context.Context) (*pgx.Conn, error) {
	cfg := t.pool.ConnConfig.Copy()
	cfg.RuntimeParams["statement_timeout"] = "0"
	c, err := pgx.ConnectConfig(ctx, cfg)
	if err != nil {
		return nil, err
	}
	if err := durable(ctx, c); err != nil {
		_ = c.Close(ctx)
		return nil, err
	}
	return c, nil
}
