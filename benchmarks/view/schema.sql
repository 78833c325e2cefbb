CREATE TABLE episodes (name TEXT PRIMARY KEY, mark TEXT, about TEXT);
CREATE TABLE frames (episode TEXT, place INTEGER, round INTEGER, frame TEXT, PRIMARY KEY (episode, place)) WITHOUT ROWID;
CREATE TABLE agents (
    episode TEXT, number INTEGER, name TEXT, policy TEXT, persona TEXT, choices TEXT, last REAL, said INTEGER,
    flags INTEGER, PRIMARY KEY (episode, number)
) WITHOUT ROWID;
CREATE INDEX agents_last ON agents (episode, last);
CREATE INDEX agents_kind ON agents (episode, policy, persona);
CREATE INDEX agents_name ON agents (episode, name);
CREATE TABLE messages (
    id INTEGER PRIMARY KEY, episode TEXT, round INTEGER, step INTEGER, agent INTEGER, text TEXT, hearers TEXT
);
CREATE INDEX messages_round ON messages (episode, round);
CREATE INDEX messages_agent ON messages (episode, agent);
CREATE VIRTUAL TABLE said USING fts5 (text, content='messages', content_rowid='id', tokenize='trigram');
CREATE TABLE calls (
    id INTEGER PRIMARY KEY, episode TEXT, agent TEXT, step INTEGER, call TEXT, attempt INTEGER, part TEXT,
    start INTEGER, line INTEGER, tokens INTEGER, cost REAL, model TEXT, failed INTEGER
);
CREATE INDEX calls_agent ON calls (episode, agent);
CREATE TABLE parts (name TEXT PRIMARY KEY, until INTEGER);
