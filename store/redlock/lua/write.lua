
-- KEYS from 9 on: buckets
-- ARGV token, replica, nonce, head before, head after, number of buckets, their names (nothing for the inbox), then for each
-- change: which bucket, key, put (1 or 0), value
-- Returns {done, ...}, {lost, ...} or {behind, ...}, each with head, marker, held.

local err = check() or foreign(deleted, 'hash') or check_buckets(9)
if err then
  return err
end
local token, replica, nonce = ARGV[1], ARGV[2], ARGV[3]
local head = redis.call('HGET', ledger, 'head') or '0 0 0 0'

-- The head comes before the lease: a step that was made is answered so also when the lease has ended since.
if head == ARGV[5] then
  return report('done', token, replica, nonce)
elseif not holds(token, replica, nonce) then
  return report('lost', token, replica, nonce)
elseif head ~= ARGV[4] then
  return report('behind', token, replica, nonce)
end

-- Whether memory is left is decided at the first write: all of the changes are made, or none.
local count = tonumber(ARGV[6])
redis.call('HSET', ledger, 'head', ARGV[5])
-- A commit is sent when a majority has made the step before it. Who takes over knows of no such majority yet.
if string.match(ARGV[5], '^%d+ (%d+)') ~= '0' then
  redis.call('DEL', deleted)
end
for i = 7 + count, #ARGV, 4 do
  local which = tonumber(ARGV[i])
  if ARGV[i + 2] == '1' then
    redis.call('HSET', KEYS[8 + which], ARGV[i + 1], ARGV[i + 3])
    redis.call('SADD', buckets, ARGV[6 + which])
  else
    local message = KEYS[8 + which] == inbox and redis.call('HGET', inbox, ARGV[i + 1])
    if message then
      redis.call('HSET', deleted, ARGV[i + 1], message)
    end
    redis.call('HDEL', KEYS[8 + which], ARGV[i + 1])
  end
end
return report('done', token, replica, nonce)
