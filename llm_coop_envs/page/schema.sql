-- Two who come at the same time must both find all of it.
BEGIN EXCLUSIVE;
CREATE TABLE IF NOT EXISTS episodes (name TEXT PRIMARY KEY, mark TEXT, about TEXT);
CREATE TABLE IF NOT EXISTS frames (episode TEXT, place INTEGER, round INTEGER, frame TEXT, PRIMARY KEY (episode, place)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS agents (
    episode TEXT, number INTEGER, name TEXT, policy TEXT, persona TEXT, choices TEXT, last REAL, said INTEGER,
    flags INTEGER, PRIMARY KEY (episode, number)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS agents_last ON agents (episode, last);
CREATE INDEX IF NOT EXISTS agents_policy ON agents (episode, policy);
CREATE INDEX IF NOT EXISTS agents_persona ON agents (episode, persona);
CREATE INDEX IF NOT EXISTS agents_name ON agents (episode, name);
CREATE TABLE IF NOT EXISTS messages (
    id INTEGER PRIMARY KEY, episode TEXT, round INTEGER, step INTEGER, agent INTEGER, text TEXT, hearers TEXT
);
CREATE INDEX IF NOT EXISTS messages_round ON messages (episode, round);
CREATE INDEX IF NOT EXISTS messages_agent ON messages (episode, agent);
CREATE VIRTUAL TABLE IF NOT EXISTS said USING fts5 (text, content='messages', content_rowid='id', tokenize='trigram');
CREATE TABLE IF NOT EXISTS calls (
    id INTEGER PRIMARY KEY, episode TEXT, agent TEXT, step INTEGER, call TEXT, attempt INTEGER, part TEXT,
    start INTEGER, line INTEGER, tokens INTEGER, cost REAL, model TEXT, failed INTEGER
);
CREATE INDEX IF NOT EXISTS calls_agent ON calls (episode, agent, model);
CREATE TABLE IF NOT EXISTS models (episode TEXT, model TEXT, agents INTEGER, PRIMARY KEY (episode, model)) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS parts (name TEXT PRIMARY KEY, until INTEGER);
COMMIT;
