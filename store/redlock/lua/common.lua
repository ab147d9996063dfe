
-- Put between the prelude and every script of this folder.
-- The first KEYS are the same for all: lease, fence, votes, ledger, sessions, info, buckets, inbox.

local lease, fence, votes, ledger, sessions, info, buckets, inbox = unpack(KEYS)

-- deleted holds the messages that the last commit has deleted: if no other follows on it, they come again.
local deleted = inbox .. ':deleted'

-- check returns an error when a key is not ours. The fence of a store on one Redis is a hash: its groups are not touched.
local function check()
  return foreign(fence, 'string') or foreign(lease, 'string') or foreign(votes, 'hash') or foreign(ledger, 'hash')
    or foreign(sessions, 'zset') or foreign(info, 'hash') or foreign(buckets, 'set') or foreign(inbox, 'hash')
end

-- check_buckets returns an error when one of the further KEYS, from the first given, is not a hash.
local function check_buckets(first)
  for i = first, #KEYS do
    local err = foreign(KEYS[i], 'hash')
    if err then
      return err
    end
  end
  return nil
end

-- answer begins every answer that a vote is made of: a word, the run of this server, for how many seconds it has run, and
-- its clock. A run is read each time, because what belongs to another must never count for this one.
local function answer(word, us, ...)
  local server = redis.call('INFO', 'server')
  return {word, string.match(server, 'run_id:(%x+)') or '', string.match(server, 'uptime_in_seconds:(%d+)') or '0', whole(us), ...}
end

local function this_run()
  return string.match(redis.call('INFO', 'server'), 'run_id:(%x+)') or ''
end

-- holder returns what a lease says: its token, replica, nonce and attempt.
local function holder()
  local value = redis.call('GET', lease)
  if not value then
    return nil
  end
  local token, replica, nonce, attempt = string.match(value, '^(%d+) (%S+) (%S+) (%S+)$')
  return token or '0', replica or '', nonce or '', attempt or '', value
end

-- older tells whether an attempt was made before another; one that a repair has put there, '-', is as old as any.
local function older(attempt, other)
  return (tonumber(string.sub(attempt, 1, 16)) or 0) < (tonumber(string.sub(other, 1, 16)) or 0)
end

-- holds tells whether exactly this lease is held.
local function holds(token, replica, nonce)
  local t, r, n = holder()
  return t == token and r == replica and n == nonce
end

-- hold writes a lease.
local function hold(token, replica, nonce, attempt, till)
  redis.call('SET', lease, token .. ' ' .. replica .. ' ' .. nonce .. ' ' .. attempt, 'PXAT', whole(till))
end

-- mark has a store on one Redis keep off; with a ledger, for good.
local function mark(ttl)
  if redis.call('EXISTS', ledger) == 1 then
    redis.call('SET', fence, 'redlock')
  else
    redis.call('SET', fence, 'redlock', 'PX', FENCE_MS + ttl)
  end
end

-- vouch_for_counter notes that the counter is above every token that was ever settled by a majority.
local function vouch_for_counter(vouch)
  if vouch == '1' then
    redis.call('HSET', votes, 'run', this_run())
  end
end

-- keep_votes lets what is known of leases outlive the last one.
local function keep_votes(ttl)
  redis.call('PEXPIRE', votes, FENCE_MS + ttl)
  if redis.call('EXISTS', ledger) == 0 then
    redis.call('PEXPIRE', fence, FENCE_MS + ttl)
  end
end

-- refuse puts a word before those that are refused from now on, in so many bytes.
local function refuse(field, word, bytes)
  local list = redis.call('HGET', votes, field) or ''
  if not string.find(' ' .. list .. ' ', ' ' .. word .. ' ', 1, true) then
    redis.call('HSET', votes, field, string.sub(word .. ' ' .. list, 1, tonumber(bytes)))
  end
  redis.call('PEXPIRE', votes, FENCE_MS)
end

local function is_refused(field, word)
  local list = redis.call('HGET', votes, field)
  return list and string.find(' ' .. list .. ' ', ' ' .. word .. ' ', 1, true)
end

-- report tells of the ledger. token is '' when no lease is asked about.
local function report(word, token, replica, nonce, ...)
  local at = redis.call('HMGET', ledger, 'head', 'marker')
  local held = '0'
  if token ~= '' and holds(token, replica, nonce) then
    held = '1'
  end
  return answer(word, now_us(), at[1] or '0 0 0 0', at[2] or '', held, ...)
end
