-- KEYS lease, fence, buckets
-- ARGV lease, its token, number, whether replicas are waited for (1 or 0), then for each change: which of KEYS, key,
-- put (1 or 0), value
-- Returns {ok}, {stale}, {lost} or {gap}.

local lease, fence, token, number = KEYS[1], KEYS[2], ARGV[2], tonumber(ARGV[3])

local err = foreign(lease, 'string') or foreign(fence, 'hash')
for i = 3, #KEYS do
  err = err or foreign(KEYS[i], 'hash')
end
if err then
  return err
end

-- The position comes before the lease: a commit that was applied is answered so also when the lease has ended since.
local last = 0
local position = redis.call('HMGET', fence, 'committed', 'number')
if position[1] == token then
  last = tonumber(position[2] or '0') or 0
end
if number == last then
  if ARGV[4] == '1' then
    redis.call('PEXPIRE', fence, FENCE_MS) -- a connection that has written nothing waits for nobody
  end
  return {'ok'}
elseif number < last then
  return {'stale'}
elseif redis.call('GET', lease) ~= ARGV[1] then
  return {'lost'}
elseif number > last + 1 then
  return {'gap'}
end

-- Whether memory is left is decided at the first write: all of the changes are made, or none.
for i = 5, #ARGV, 4 do
  local bucket = KEYS[tonumber(ARGV[i])]
  if ARGV[i + 2] == '1' then
    redis.call('HSET', bucket, ARGV[i + 1], ARGV[i + 3])
  else
    redis.call('HDEL', bucket, ARGV[i + 1])
  end
end
redis.call('HSET', fence, 'committed', token, 'number', ARGV[3])
return {'ok'}
