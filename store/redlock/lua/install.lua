
-- KEYS 9: the list of what is put aside
-- ARGV token, replica, nonce, head, what the keys of buckets begin with, what those of what is put aside do
-- Returns {done, ...}, {lost, ...}, {behind, ...} or {nothing, ...}, each with head, marker, held. The names of keys are made
-- here, of keys of this group: what else there is, no client knows.

local err = check() or foreign(deleted, 'hash') or foreign(KEYS[9], 'hash')
if err then
  return err
end
local token, replica, nonce = ARGV[1], ARGV[2], ARGV[3]

-- later compares two heads, number by number.
local function later(a, b)
  local next_of_b = string.gmatch(b, '%d+')
  for digits in string.gmatch(a, '%d+') do
    local x, y = tonumber(digits), tonumber(next_of_b())
    if x ~= y then
      return x > y
    end
  end
  return false
end

if not holds(token, replica, nonce) then
  return report('lost', token, replica, nonce)
elseif later(redis.call('HGET', ledger, 'head') or '0 0 0 0', ARGV[4]) then
  return report('behind', token, replica, nonce)
elseif redis.call('HGET', KEYS[9], '@run') ~= this_run() then
  return report('nothing', token, replica, nonce)
end

-- The first write is one that a server out of memory refuses: nothing is done then.
redis.call('HSET', ledger, 'head', ARGV[4], 'marker', this_run())
for _, name in ipairs(redis.call('SMEMBERS', buckets)) do
  redis.call('UNLINK', ARGV[5] .. name)
end
redis.call('DEL', buckets)
for _, name in ipairs(redis.call('HKEYS', KEYS[9])) do
  if redis.call('EXISTS', ARGV[6] .. name) == 1 then
    redis.call('RENAME', ARGV[6] .. name, ARGV[5] .. name)
    redis.call('PERSIST', ARGV[5] .. name)
    redis.call('SADD', buckets, name)
  end
end
for _, id in ipairs(redis.call('HKEYS', deleted)) do
  redis.call('HSETNX', inbox, id, redis.call('HGET', deleted, id))
end
redis.call('DEL', deleted)
redis.call('DEL', KEYS[9])
redis.call('SET', fence, 'redlock')
return report('done', token, replica, nonce)
